"""The models for pydantic beside `acp.schema` of the official Python SDK: the same messages, and their names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.flavours import Flavour
from acpgen.ir.model import Model, Ref
from benchmarks.lab import read_corpus
from tests.documents import section
from tests.interop import values_v1
from tests.models_support import models_of
from tests.needs import need
from tests.support import REPOSITORY, model_of

pytestmark = pytest.mark.full

REFUSED = object()
"""In the place of what a value that does not validate is written as."""
SOURCES = SchemaChoice(protocol=1)


@cache
def sdk() -> ModuleType:
    need("acp")
    from acp import schema

    return schema


def ours() -> ModuleType:
    return models_of(SOURCES, Flavour.PYDANTIC)


@cache
def model() -> Model:
    return model_of(SOURCES)[0]


# --- Messages -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Payload:
    """Params or a result, and where it comes from; the name of its type in both, or the method that has it."""

    label: str
    raw: Any
    type: str = ""
    method: str = ""
    is_result: bool = False

    def __str__(self) -> str:
        return self.label


def type_of(payload: Payload) -> str:
    method = next((each for each in model().methods if each.wire == payload.method), None)
    if method is None:
        return payload.type
    kind = method.result if payload.is_result else method.params
    assert isinstance(kind, Ref)
    return kind.name


def payloads() -> Iterator[Payload]:
    """Those of the benchmarks, and what the packages and the SDKs say to each other in tests/interop."""
    for name, entry in read_corpus().items():
        message: Any = entry["message"]
        raw = message["result" if "result" in message else "params"]
        yield Payload(label=name, raw=raw, type=str(entry["type"]))
    for each in values_v1.EXCHANGES:
        yield Payload(label=str(each), raw=each.params, method=each.method)
        if each.result is not None:
            yield Payload(label=f"{each}, answered", raw=each.result, method=each.method, is_result=True)


PAYLOADS = tuple(payloads())


def of_sdk(name: str) -> Any:
    """The type of the SDK. It has no union for one of them, where there are two classes."""
    if hasattr(sdk(), name):
        return getattr(sdk(), name)
    assert name == "SetSessionConfigOptionRequest"
    return sdk().SetSessionConfigOptionBooleanRequest | sdk().SetSessionConfigOptionSelectRequest


def written(kind: Any, raw: Any) -> Any:
    """What a value is written as when it was read: from Python and from a text, to Python and to a text."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter[Any](kind)
    try:
        value = adapter.validate_python(raw)
    except ValidationError:
        with pytest.raises(ValidationError):
            adapter.validate_json(json.dumps(raw))
        return REFUSED
    assert adapter.validate_json(json.dumps(raw)) == value
    found = adapter.dump_python(value, mode="json", by_alias=True, exclude_unset=True)
    assert json.loads(adapter.dump_json(value, by_alias=True, exclude_unset=True)) == found
    return found


LATER = {
    "session/update: notice",
    "session/update: compaction_update",
    "session/update: compaction_summary_chunk",
}
"""What the release of the schema that the SDK is made of does not have."""


@pytest.mark.parametrize("payload", PAYLOADS, ids=str)
def test_a_message_is_the_same_in_both(payload: Payload) -> None:
    name = type_of(payload)
    assert written(getattr(ours(), name), payload.raw) == payload.raw
    assert written(of_sdk(name), payload.raw) == (REFUSED if payload.label in LATER else payload.raw)


def test_there_are_messages_of_all_kinds() -> None:
    assert {each.label for each in PAYLOADS} > LATER
    assert len(PAYLOADS) > 90
    assert len(set(map(type_of, PAYLOADS))) > 35


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A row of the table in docs/models.md: a value, and what the SDK makes of it, and what the models do."""

    name: str
    type: str
    raw: Any
    ours: Any
    theirs: Any


PLACE = {"path": "/a", "line": 1}
OPTION = {"id": "a", "name": "A", "type": "boolean", "currentValue": True}
URL = {"mode": "url", "message": "", "url": "https://a.example", "elicitationId": "e", "requestId": 1}
CALL = {"toolCallId": "c", "name": "grep"}
DIFFERENCES = (
    Difference(
        name="a property of a later release",
        type="ToolCallUpdate",
        raw=CALL,
        ours=CALL,
        theirs={"toolCallId": "c"},
    ),
    Difference(
        name="a text where a number belongs",
        type="ToolCallLocation",
        raw={"path": "/a", "line": "1"},
        ours=REFUSED,
        theirs=PLACE,
    ),
    Difference(
        name="1.0 where an integer belongs",
        type="ToolCallLocation",
        raw={"path": "/a", "line": 1.0},
        ours=REFUSED,
        theirs=PLACE,
    ),
    Difference(
        name="a wrong value that the schema lets a reader drop",
        type="ToolCallLocation",
        raw={"path": "/a", "line": -1},
        ours=REFUSED,
        theirs={"path": "/a", "line": None},
    ),
    Difference(
        name="a wrong item of such an array",
        type="InitializeResponse",
        raw={"protocolVersion": 1, "authMethods": [{"id": "a", "name": "A"}, 7]},
        ours=REFUSED,
        theirs={"protocolVersion": 1, "authMethods": [{"id": "a", "name": "A"}]},
    ),
    Difference(
        name="a constant that an open enumeration lacks",
        type="SetSessionConfigOptionResponse",
        raw={"configOptions": [{**OPTION, "category": "new"}]},
        ours={"configOptions": [{**OPTION, "category": "new"}]},
        theirs={"configOptions": [{**OPTION, "category": None}]},
    ),
    Difference(
        name="names in snake case",
        type="CancelNotification",
        raw={"session_id": "s"},
        ours=REFUSED,
        theirs={"sessionId": "s"},
    ),
    Difference(
        name="a text that is no URL",
        type="CreateElicitationRequest",
        raw={**URL, "url": "a.example"},
        ours={**URL, "url": "a.example"},
        theirs=REFUSED,
    ),
    Difference(
        name="a URL without a path",
        type="CreateElicitationRequest",
        raw=URL,
        ours=URL,
        theirs={**URL, "url": "https://a.example/"},
    ),
)


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: row.name)
def test_differences(row: Difference) -> None:
    assert written(getattr(ours(), row.type), row.raw) == row.ours
    assert written(of_sdk(row.type), row.raw) == row.theirs


def test_the_page_has_the_differences() -> None:
    text = section((REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8"), "Beside other models")
    rows = re.findall(r"^\| (.+?) \| .+ \| .+ \|$", text, flags=re.MULTILINE)
    assert rows == [*(row.name for row in DIFFERENCES), "a dump without arguments"]


def test_a_dump_without_arguments() -> None:
    raw = {"sessionId": "s", "prompt": [{"type": "text", "text": "Hi", "annotations": None}]}
    assert ours().PromptRequest.model_validate(raw).model_dump(mode="json") == raw
    theirs = sdk().PromptRequest.model_validate(raw).model_dump(mode="json")
    assert (theirs["session_id"], theirs["field_meta"]) == ("s", None)
