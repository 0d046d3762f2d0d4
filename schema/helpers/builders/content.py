"""Content blocks, and the content of tool calls."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, TypeVar

from .._base import UNSET, UnsetType
from ..decision import explains
from ..types import (
    Annotations,
    BlobResourceContents,
    ContentBlock,
    ContentBlockAudio,
    ContentBlockImage,
    ContentBlockResource,
    ContentBlockResourceLink,
    ContentBlockText,
    TextResourceContents,
    ToolCallContent,
    ToolCallContentContent,
    ToolCallContentTerminal,
)

__all__ = ["audio", "image", "link", "resource", "terminal", "text", "tool_content"]


T = TypeVar("T")


def text(
    text: str, *, annotations: Annotations | UnsetType = UNSET, meta: dict[str, Any] | UnsetType = UNSET
) -> ContentBlockText:
    """A block of text, plain or Markdown."""
    return ContentBlockText(text=text, annotations=annotations, meta=meta)


@explains
def image(
    data: bytes | str,
    mime_type: str,
    *,
    uri: str | UnsetType = UNSET,
    annotations: Annotations | UnsetType = UNSET,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> ContentBlockImage:
    """An image, from its bytes or from base64, with a type such as `image/png`. `uri` is where it comes from."""
    return ContentBlockImage(data=_base64(data), mime_type=mime_type, uri=uri, annotations=annotations, meta=meta)


@explains
def audio(
    data: bytes | str,
    mime_type: str,
    *,
    annotations: Annotations | UnsetType = UNSET,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> ContentBlockAudio:
    """A sound, from its bytes or from base64, with a type such as `audio/wav`."""
    return ContentBlockAudio(data=_base64(data), mime_type=mime_type, annotations=annotations, meta=meta)


@explains
def link(
    uri: str,
    *,
    name: str | None = None,
    mime_type: str | None = None,
    title: str | UnsetType = UNSET,
    description: str | UnsetType = UNSET,
    size: int | UnsetType = UNSET,
    icons: Iterable[Any] | None = None,
    annotations: Annotations | UnsetType = UNSET,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> ContentBlockResourceLink:
    """A link to a resource. Without a name, it gets the last part of the URI. `size` is in bytes.

    `icons` are in protocol 2 alone: elsewhere they raise `TypeError`.
    """
    only_here: dict[str, Any] = {} if icons is None else {"icons": items_of(icons, "icons")}
    return ContentBlockResourceLink(
        uri=uri,
        name=name if name is not None else uri.rstrip("/").rpartition("/")[2] or uri,
        mime_type=UNSET if mime_type is None else mime_type,
        title=title,
        description=description,
        size=size,
        annotations=annotations,
        meta=meta,
        **only_here,
    )


@explains
def resource(
    uri: str,
    contents: str | bytes,
    *,
    mime_type: str | None = None,
    annotations: Annotations | UnsetType = UNSET,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> ContentBlockResource:
    """A resource sent whole: text from a str, anything else from its bytes."""
    kind = UNSET if mime_type is None else mime_type
    found: TextResourceContents | BlobResourceContents
    if isinstance(contents, str):
        found = TextResourceContents(uri=uri, text=contents, mime_type=kind)
    else:
        found = BlobResourceContents(uri=uri, blob=_base64(contents), mime_type=kind)
    return ContentBlockResource(resource=found, annotations=annotations, meta=meta)


def terminal(terminal_id: str, *, meta: dict[str, Any] | UnsetType = UNSET) -> ToolCallContentTerminal:
    """A terminal, as content of a tool call."""
    return ToolCallContentTerminal(terminal_id=terminal_id, meta=meta)


def tool_content(content: str | ContentBlock | ToolCallContent) -> ToolCallContent:
    """Content of a tool call: a str is text, a block is wrapped, and what is such content already stays as it is."""
    if isinstance(content, ToolCallContent):
        return content
    return ToolCallContentContent(content=as_block(content))


def as_block(content: str | ContentBlock) -> ContentBlock:
    """A block as it is, and a str as a block of text."""
    return ContentBlockText(text=content) if isinstance(content, str) else content


def items_of(values: Iterable[T], name: str) -> list[T]:
    """A list of the values of the argument `name`. Raises `TypeError` for a text, which has letters as its values."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name} is a text, and each of its letters would be an item: write [{values!r:.50}]")
    try:
        return [*iter(values)]
    except TypeError as error:
        if hasattr(values, "__iter__"):
            raise
        hint = ": is an `await` missing?" if hasattr(values, "__await__") else ""
        raise TypeError(f"{name} must be a list, and not of the class {type(values).__name__}{hint}") from error


def name_of(name: str | UnsetType | None) -> dict[str, Any]:
    """The argument `name` of a tool call, if there is one: releases such as 0.10.8 do not have it."""
    return {"name": name} if isinstance(name, str) else {}


def _base64(data: bytes | str) -> str:
    return data if isinstance(data, str) else b64encode(data).decode("ascii")
