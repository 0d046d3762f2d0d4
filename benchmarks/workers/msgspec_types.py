"""As much of the protocol as the corpus needs, as msgspec wants it. Written for the benchmark alone."""

# no `from __future__ import annotations`: msgspec reads the annotations when a class is made
from typing import Any, Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

T = TypeVar("T")
Meta = dict[str, Any] | None | UnsetType


class Base(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """What all objects have in common."""

    meta: Meta = UNSET


class Envelope(Struct, Generic[T], omit_defaults=True, kw_only=True):
    """A request or notification."""

    jsonrpc: Literal["2.0"]
    id: int | str | UnsetType = UNSET
    method: str
    params: T


class Result(Struct, Generic[T], kw_only=True):
    """A response."""

    jsonrpc: Literal["2.0"]
    id: int | str
    result: T


class Annotations(Base, kw_only=True):
    audience: list[str] | None | UnsetType = UNSET
    last_modified: str | None | UnsetType = UNSET
    priority: float | None | UnsetType = UNSET


class Content(Base, tag_field="type", kw_only=True):
    annotations: Annotations | None | UnsetType = UNSET


class Text(Content, tag="text", kw_only=True):
    text: str


class Image(Content, tag="image", kw_only=True):
    data: str
    mime_type: str
    uri: str | None | UnsetType = UNSET


class Audio(Content, tag="audio", kw_only=True):
    data: str
    mime_type: str


class Link(Content, tag="resource_link", kw_only=True):
    name: str
    uri: str
    title: str | None | UnsetType = UNSET
    description: str | None | UnsetType = UNSET
    mime_type: str | None | UnsetType = UNSET
    size: int | None | UnsetType = UNSET


class Contents(Base, kw_only=True):
    """Text or a blob: without a tag, msgspec cannot have two classes."""

    uri: str
    mime_type: str | None | UnsetType = UNSET
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class Embedded(Content, tag="resource", kw_only=True):
    resource: Contents


Block = Text | Image | Audio | Link | Embedded


class Implementation(Base, kw_only=True):
    name: str
    version: str
    title: str | None | UnsetType = UNSET


class Files(Base, kw_only=True):
    read_text_file: bool = False
    write_text_file: bool = False


class ClientAuth(Base, kw_only=True):
    terminal: bool = False


class ClientCapabilities(Base, kw_only=True):
    fs: Files
    terminal: bool = False
    auth: ClientAuth


class InitializeRequest(Base, kw_only=True):
    protocol_version: int
    client_capabilities: ClientCapabilities
    client_info: Implementation | None | UnsetType = UNSET


class PromptCapabilities(Base, kw_only=True):
    image: bool = False
    audio: bool = False
    embedded_context: bool = False


class McpCapabilities(Base, kw_only=True):
    http: bool = False
    sse: bool = False


class Empty(Base, kw_only=True):
    pass


class SessionCapabilities(Base, kw_only=True):
    list: Empty | None | UnsetType = UNSET
    resume: Empty | None | UnsetType = UNSET
    close: Empty | None | UnsetType = UNSET
    delete: Empty | None | UnsetType = UNSET


class AgentAuth(Base, kw_only=True):
    logout: Empty | None | UnsetType = UNSET


class AgentCapabilities(Base, kw_only=True):
    load_session: bool = False
    prompt_capabilities: PromptCapabilities
    mcp_capabilities: McpCapabilities
    session_capabilities: SessionCapabilities
    auth: AgentAuth


class AuthMethod(Base, kw_only=True):
    id: str
    name: str
    description: str | None | UnsetType = UNSET


class InitializeResponse(Base, kw_only=True):
    protocol_version: int
    agent_capabilities: AgentCapabilities
    auth_methods: list[AuthMethod]
    agent_info: Implementation | None | UnsetType = UNSET


class Pair(Base, kw_only=True):
    name: str
    value: str


class McpServer(Base, kw_only=True):
    """One with a tag, or the one without: again a single class."""

    name: str
    type: Literal["http", "sse"] | UnsetType = UNSET
    command: str | UnsetType = UNSET
    args: list[str] | UnsetType = UNSET
    env: list[Pair] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    headers: list[Pair] | UnsetType = UNSET


class NewSessionRequest(Base, kw_only=True):
    cwd: str
    mcp_servers: list[McpServer]
    additional_directories: list[str] | UnsetType = UNSET


class Mode(Base, kw_only=True):
    id: str
    name: str
    description: str | None | UnsetType = UNSET


class Modes(Base, kw_only=True):
    current_mode_id: str
    available_modes: list[Mode]


class Choice(Base, kw_only=True):
    value: str
    name: str
    description: str | None | UnsetType = UNSET


class Option(Base, tag_field="type", kw_only=True):
    id: str
    name: str
    description: str | None | UnsetType = UNSET
    category: str | None | UnsetType = UNSET


class Select(Option, tag="select", kw_only=True):
    current_value: str
    options: list[Choice]


class Switch(Option, tag="boolean", kw_only=True):
    current_value: bool


class NewSessionResponse(Base, kw_only=True):
    session_id: str
    modes: Modes | None | UnsetType = UNSET
    config_options: list[Select | Switch] | None | UnsetType = UNSET


class PromptRequest(Base, kw_only=True):
    session_id: str
    prompt: list[Block]


class ContentContent(Base, tag_field="type", tag="content", kw_only=True):
    content: Block


class Diff(Base, tag_field="type", tag="diff", kw_only=True):
    path: str
    new_text: str
    old_text: str | None | UnsetType = UNSET


class Terminal(Base, tag_field="type", tag="terminal", kw_only=True):
    terminal_id: str


class Location(Base, kw_only=True):
    path: str
    line: int | None | UnsetType = UNSET


Kind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"]
Status = Literal["pending", "in_progress", "completed", "failed"]


class ToolCallUpdate(Base, kw_only=True):
    tool_call_id: str
    title: str | None | UnsetType = UNSET
    kind: Kind | None | UnsetType = UNSET
    status: Status | None | UnsetType = UNSET
    content: list[ContentContent | Diff | Terminal] | None | UnsetType = UNSET
    locations: list[Location] | None | UnsetType = UNSET
    raw_input: Any = UNSET
    raw_output: Any = UNSET


class UpdatedCall(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call_update", kw_only=True):
    pass


class Call(ToolCallUpdate, tag_field="sessionUpdate", tag="tool_call", kw_only=True):
    pass


class Chunk(Base, tag_field="sessionUpdate", tag="agent_message_chunk", kw_only=True):
    content: Block
    message_id: str | None | UnsetType = UNSET


class Entry(Base, kw_only=True):
    content: str
    priority: Literal["high", "medium", "low"]
    status: Literal["pending", "in_progress", "completed"]


class Plan(Base, tag_field="sessionUpdate", tag="plan", kw_only=True):
    entries: list[Entry]


class Input(Base, kw_only=True):
    hint: str


class Command(Base, kw_only=True):
    name: str
    description: str
    input: Input | None | UnsetType = UNSET


class Commands(Base, tag_field="sessionUpdate", tag="available_commands_update", kw_only=True):
    available_commands: list[Command]


class SessionNotification(Base, kw_only=True):
    session_id: str
    update: Chunk | Call | UpdatedCall | Plan | Commands


class PermissionOption(Base, kw_only=True):
    option_id: str
    name: str
    kind: Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class RequestPermissionRequest(Base, kw_only=True):
    session_id: str
    tool_call: ToolCallUpdate
    options: list[PermissionOption]


class ReadTextFileResponse(Base, kw_only=True):
    content: str


PAYLOADS: dict[str, Any] = {
    found.__name__: found
    for found in (
        InitializeRequest,
        InitializeResponse,
        NewSessionRequest,
        NewSessionResponse,
        PromptRequest,
        SessionNotification,
        RequestPermissionRequest,
        ReadTextFileResponse,
    )
}
