"""What the bundled schemas say about single values, and that the generated decoders say the same."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.support import Packages, codec_functions, schema_of

REFUSED = "refused"
MESSAGE = {"message": "m"}
ELICITATION = {"mode": "form", "message": "m", "requestedSchema": {"type": "object", "properties": {}}}
OPTION = {"sessionId": "s", "configId": "c"}


def bundled(packages: Packages, protocol: int) -> ModuleType:
    return packages(SchemaChoice(protocol=protocol, release="2026-11-02"))


def find(packages: Packages, name: str) -> tuple[ModuleType, Any]:
    """The package and the type that `name` ("v1 ContentBlock") stands for."""
    version, type_ = name.split()
    acp = bundled(packages, int(version[1:]))
    return acp, getattr(acp, type_)


def type_name(value: Any) -> str:
    return type(value).__name__


def contains(whole: Any, part: Any) -> bool:
    """Whether `whole` is `part` with, at most, more properties in its objects: defaults that became explicit."""
    match whole, part:
        case dict(), dict():
            return part.keys() <= whole.keys() and all(contains(whole[key], part[key]) for key in part)
        case list(), list():
            return len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part) and isinstance(whole, bool) is isinstance(part, bool)


# --- Unknown tags, and objects that lack something -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "verdict"),
    [
        ("v1 McpServer", {"type": "acp", "name": "n", "serverId": "x"}, REFUSED),
        ("v2 McpServer", {"type": "acp", "name": "n", "serverId": "x"}, "McpServerOther"),
        ("v2 PlanUpdateContent", {"type": "_x", "planId": "p"}, "PlanUpdateContentOther"),
        ("v2 PlanUpdateContent", {"type": "_x"}, REFUSED),
        ("v2 ContentBlock", {"type": "text"}, REFUSED),
        ("v1 CreateElicitationRequest", ELICITATION, REFUSED),
        (
            "v1 CreateElicitationRequest",
            {"mode": "zzz", "message": "m", "requestId": None, "extra": 1},
            "CreateElicitationRequestOtherRequest",
        ),
        ("v1 CreateElicitationRequest", {"mode": "zzz", "message": "m", "extra": 1}, REFUSED),
        ("v1 SetSessionConfigOptionRequest", OPTION | {"value": "x"}, "SetSessionConfigOptionRequestValueId"),
        ("v2 SetSessionConfigOptionRequest", OPTION | {"value": "x"}, REFUSED),
        ("v2 SessionUpdate", {"sessionUpdate": "state_update", "state": "zzz"}, "SessionUpdateStateUpdateOther"),
        ("v2 SessionUpdate", {"sessionUpdate": "state_update"}, REFUSED),
    ],
)
def test_acceptance_probe(packages: Packages, name: str, raw: Any, verdict: str) -> None:
    acp, type_ = find(packages, name)
    if verdict == REFUSED:
        with pytest.raises(acp.DecodeError):
            acp.decode(type_, raw)
    else:
        value = acp.decode(type_, raw)
        assert type_name(value) == verdict
        assert acp.encode(value) == raw


def test_an_unknown_kind_of_authentication_is_the_agents_own(packages: Packages) -> None:
    """The untagged member takes it, and keeps what it knows: the rest has no name in the schema."""
    acp = bundled(packages, 1)
    value = acp.decode(acp.AuthMethod, {"type": "env_var", "id": "a", "name": "n", "vars": []})
    assert value == acp.AuthMethodAgent(id="a", name="n")
    assert acp.encode(value) == {"id": "a", "name": "n"}


# --- Objects --------------------------------------------------------------------------------------------------------


def test_a_marker_is_kept_however_empty(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw: dict[str, Any] = {"list": {}, "delete": None}
    value = acp.decode(acp.SessionCapabilities, raw)
    assert (value.list, value.delete, value.close) == (acp.SessionListCapabilities(), None, acp.UNSET)
    assert acp.encode(value) == {"list": {}}, "null is left out where it says no more than that"


def test_an_object_without_any_property_keeps_its_class(packages: Packages) -> None:
    acp = bundled(packages, 1)
    assert acp.decode(acp.CompactionCapabilities, {"later": 1}) == acp.CompactionCapabilities()
    assert acp.encode(acp.CompactionCapabilities()) == {}


def test_unnamed_properties_are_dropped(packages: Packages) -> None:
    acp = bundled(packages, 1)
    value = acp.decode(acp.EnvVariable, {"name": "n", "value": "v", "surplus": 1})
    assert acp.encode(value) == {"name": "n", "value": "v"}


def test_meta_is_kept_as_it_is(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw = {"_meta": {"a": [None, {"b": 1.5}], "camelCase": True}}
    value = acp.decode(acp.LogoutRequest, raw)
    assert value.meta == raw["_meta"]
    assert acp.encode(value) == raw


def test_properties_may_be_named_like_keywords_of_json_schema(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw = {
        "type": "object",
        "properties": {
            "properties": {"type": "string", "format": "email", "pattern": "a+", "minLength": 1, "default": "aa"},
            "required": {"type": "array", "items": {"type": "string", "enum": ["const"]}, "maxItems": 2},
            "oneOf": {"type": "string", "oneOf": [{"const": "anyOf", "title": "items"}], "description": "enum"},
        },
        "required": ["properties"],
    }
    value = acp.decode(acp.ElicitationSchema, raw)
    assert list(map(type_name, value.properties.values())) == [
        "ElicitationPropertySchemaString",
        "ElicitationPropertySchemaArray",
        "ElicitationPropertySchemaString",
    ]
    assert value.properties["oneOf"].one_of == [acp.EnumOption(const="anyOf", title="items")]
    assert acp.encode(value) == raw


# --- Scalars --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("raw", [0, 1, 65535, 1.0])
def test_a_bounded_integer(packages: Packages, protocol: int, raw: Any) -> None:
    acp = bundled(packages, protocol)
    value = acp.decode(acp.ProtocolVersion, raw)
    assert value == raw
    assert type(value) is int


@pytest.mark.parametrize("protocol", [1, 2])
@pytest.mark.parametrize("raw", [-1, 65536, True, "1", 1.5, None, [1]])
def test_what_is_no_bounded_integer(packages: Packages, protocol: int, raw: Any) -> None:
    acp = bundled(packages, protocol)
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.ProtocolVersion, raw)


@pytest.mark.parametrize(("priority", "is_fit"), [(0, True), (1, True), (0.5, True), (1.5, False), (-0.1, False)])
def test_a_bounded_number(packages: Packages, priority: float, is_fit: bool) -> None:
    acp = bundled(packages, 2)
    value = acp.decode(acp.Annotations, {"priority": priority})
    assert value.priority == (priority if is_fit else acp.UNSET)


def test_a_string_may_have_to_be_of_some_length(packages: Packages) -> None:
    acp = bundled(packages, 2)
    raw = {"sessionUpdate": "notice", "severity": "info", "title": ""}
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.SessionUpdate, raw)
    assert caught.value.path == ("title",)
    assert acp.encode(acp.decode(acp.SessionUpdate, raw | {"title": "t"})) == raw | {"title": "t"}


def test_an_array_may_have_to_be_of_some_length(packages: Packages) -> None:
    acp = bundled(packages, 2)
    schema = {"type": "object", "properties": {"p": {"type": "string", "enum": []}}}
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.ElicitationSchema, schema)
    assert caught.value.path == ("properties", "p", "enum")


@pytest.mark.parametrize("value", [None, 7, -1, "id"])
def test_the_id_of_a_request_may_be_null(packages: Packages, value: Any) -> None:
    acp = bundled(packages, 1)
    decoded = acp.decode(acp.CancelRequestNotification, {"requestId": value})
    assert decoded.request_id == value
    assert acp.encode(decoded) == {"requestId": value}


def test_the_id_of_a_request_has_to_be_there(packages: Packages) -> None:
    acp = bundled(packages, 1)
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.CancelRequestNotification, {})
    assert caught.value.path == ("requestId",)


@pytest.mark.parametrize("value", [True, 1.5, [], {}])
def test_what_is_no_id_of_a_request(packages: Packages, value: Any) -> None:
    acp = bundled(packages, 1)
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.CancelRequestNotification, {"requestId": value})


# --- Enums ----------------------------------------------------------------------------------------------------------


def test_a_closed_enum_knows_its_constants_only(packages: Packages) -> None:
    acp = bundled(packages, 1)
    assert acp.decode(acp.StopReason, "end_turn") == "end_turn"
    for raw in ("zzz", "END_TURN", None, 0, ["end_turn"]):
        with pytest.raises(acp.DecodeError):
            acp.decode(acp.StopReason, raw)


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("v1 SessionConfigOptionCategory", "zzz"),
        ("v1 SessionConfigOptionCategory", "mode"),
        ("v2 ToolKind", "other"),
        ("v2 ToolKind", "_vendor"),
        ("v2 Role", "system"),
    ],
)
def test_an_open_enum_takes_every_string(packages: Packages, name: str, raw: str) -> None:
    acp, type_ = find(packages, name)
    assert acp.decode(type_, raw) == raw
    with pytest.raises(acp.DecodeError):
        acp.decode(type_, 1)


@pytest.mark.parametrize("protocol", [1, 2])
def test_an_open_enum_of_integers(packages: Packages, protocol: int) -> None:
    acp = bundled(packages, protocol)
    for code in (-32700, 4711):
        assert acp.decode(acp.ErrorCode, code) == code
    for raw in (True, "-32700", None, 0.5):
        with pytest.raises(acp.DecodeError):
            acp.decode(acp.ErrorCode, raw)


# --- Unions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("v1 ContentBlock", {"type": "text", "text": "t"}, "ContentBlockText"),
        ("v1 ContentBlock", {"type": "image", "data": "", "mimeType": "a/b"}, "ContentBlockImage"),
        ("v1 RequestPermissionOutcome", {"outcome": "cancelled"}, "RequestPermissionOutcomeCancelled"),
        (
            "v1 RequestPermissionOutcome",
            {"outcome": "selected", "optionId": "o"},
            "RequestPermissionOutcomeSelected",
        ),
        (
            "v1 SessionUpdate",
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}},
            "SessionUpdateAgentMessageChunk",
        ),
        (
            "v1 SessionUpdate",
            {"sessionUpdate": "tool_call_update", "toolCallId": "t"},
            "SessionUpdateToolCallUpdate",
        ),
        # members with a tag beside members without
        ("v1 McpServer", {"type": "http", "name": "n", "url": "u", "headers": []}, "McpServerHttp"),
        ("v1 McpServer", {"name": "n", "command": "c", "args": [], "env": []}, "McpServerStdio"),
        ("v1 AuthMethod", {"type": "terminal", "id": "a", "name": "n"}, "AuthMethodTerminal"),
        ("v1 AuthMethod", {"id": "a", "name": "n"}, "AuthMethodAgent"),
        ("v1 MultiSelectItems", {"type": "string", "enum": ["a"]}, "MultiSelectItemsString"),
        ("v1 MultiSelectItems", {"type": "_x", "enum": ["a"]}, "MultiSelectItemsOther"),
        ("v1 MultiSelectItems", {"anyOf": [{"const": "a", "title": "A"}]}, "TitledMultiSelectItems"),
        # own properties around the union
        ("v1 SessionConfigOption", OPTION | {"type": "boolean"}, REFUSED),
        (
            "v1 SetSessionConfigOptionRequest",
            OPTION | {"type": "boolean", "value": True},
            "SetSessionConfigOptionRequestBoolean",
        ),
        ("v2 SetSessionConfigOptionRequest", OPTION | {"type": "id", "value": 1}, REFUSED),
        (
            "v2 SetSessionConfigOptionRequest",
            OPTION | {"type": "_x", "value": None},
            "SetSessionConfigOptionRequestOther",
        ),
        ("v2 SetSessionConfigOptionRequest", OPTION | {"type": "_x"}, REFUSED),
        ("v2 DiffChange", {"operation": "add", "path": "/a", "fileType": "text"}, "DiffChangeAdd"),
        ("v2 DiffChange", {"operation": "move", "oldPath": "/a", "path": "/b"}, "DiffChangeMove"),
        ("v2 DiffChange", {"operation": "_x", "fileType": "text", "by": 1}, "DiffChangeOther"),
        # a tag, and a union without one within
        ("v1 CreateElicitationRequest", ELICITATION | {"sessionId": "s"}, "CreateElicitationRequestFormSession"),
        ("v1 CreateElicitationRequest", ELICITATION | {"requestId": 1}, "CreateElicitationRequestFormRequest"),
        (
            "v1 CreateElicitationRequest",
            MESSAGE | {"mode": "url", "elicitationId": "e", "url": "u", "requestId": "r"},
            "CreateElicitationRequestUrlRequest",
        ),
        (
            "v2 SessionUpdate",
            {"sessionUpdate": "state_update", "state": "running"},
            "SessionUpdateStateUpdateRunning",
        ),
        ("v2 SessionUpdate", {"sessionUpdate": "_x", "state": "running"}, "SessionUpdateOther"),
        # no tag at all
        ("v1 EmbeddedResourceResource", {"uri": "u", "text": "t"}, "TextResourceContents"),
        ("v1 EmbeddedResourceResource", {"uri": "u", "blob": "b"}, "BlobResourceContents"),
        ("v1 EmbeddedResourceResource", {"uri": "u"}, REFUSED),
        # the one member of a union that may grow
        ("v1 AvailableCommandInput", {"hint": "h"}, "UnstructuredCommandInput"),
        # closed unions
        ("v1 ContentBlock", {"type": "_x"}, REFUSED),
        ("v1 ContentBlock", {"text": "t"}, REFUSED),
        ("v1 ContentBlock", [], REFUSED),
        # open unions
        ("v2 ContentBlock", {"type": "_x", "text": "t"}, "ContentBlockOther"),
        ("v2 ContentBlock", {"type": 1}, REFUSED),
        ("v2 ContentBlock", {"text": "t"}, REFUSED),
        ("v2 AuthMethod", {"type": "_x", "methodId": "m", "name": "n", "more": {"a": [1]}}, "AuthMethodOther"),
        ("v2 AuthMethod", {"type": "_x", "methodId": "m"}, REFUSED),
        ("v2 AuthMethod", {"methodId": "m", "name": "n"}, REFUSED),
        ("v2 ReplayFrom", {"type": "_x", "from": 3}, "ReplayFromOther"),
    ],
)
def test_member_of_a_union(packages: Packages, name: str, raw: Any, expected: str) -> None:
    acp, type_ = find(packages, name)
    if expected == REFUSED:
        with pytest.raises(acp.DecodeError):
            acp.decode(type_, raw)
        return
    value = acp.decode(type_, raw)
    assert type_name(value) == expected
    assert contains(acp.encode(value), raw)


@pytest.mark.parametrize(
    ("reason", "name"),
    [
        ({}, "None"),
        ({"stopReason": None}, "None"),
        ({"stopReason": "end_turn"}, "EndTurn"),
        ({"stopReason": "_x", "more": 1}, "Other"),
    ],
)
def test_a_property_that_the_members_of_a_union_narrow(packages: Packages, reason: dict[str, Any], name: str) -> None:
    acp = bundled(packages, 2)
    raw = {"sessionUpdate": "state_update", "state": "idle", **reason}
    value = acp.decode(acp.SessionUpdate, raw)
    assert type_name(value) == f"SessionUpdateStateUpdateIdle{name}"
    assert acp.encode(value) == raw


def test_a_malformed_reason_is_no_reason(packages: Packages) -> None:
    """What the property around the union forgives, its members forgive."""
    acp = bundled(packages, 2)
    drops: list[Any] = []
    raw = {"sessionUpdate": "state_update", "state": "idle", "stopReason": 5}
    value = acp.decode(acp.SessionUpdate, raw, on_drop=drops.append)
    assert type_name(value) == "SessionUpdateStateUpdateIdleNone"
    assert [drop.path for drop in drops] == [("stopReason",)]


def test_both_fit_and_the_first_wins(packages: Packages) -> None:
    acp = bundled(packages, 1)
    value = acp.decode(acp.EmbeddedResourceResource, {"uri": "u", "text": "t", "blob": "b"})
    assert type_name(value) == "TextResourceContents"


def test_the_excluded_tags_are_those_that_the_schema_lists(packages: Packages) -> None:
    """`file` and `markdown` were excluded once, and members in the unstable schema only."""
    acp = bundled(packages, 2)
    raw = {"type": "file", "planId": "p", "uri": "u"}
    assert acp.encode(acp.decode(acp.PlanUpdateContent, raw)) == raw
    with pytest.raises(acp.DecodeError):
        codec_functions(acp)["decode_plan_update_content_other"]({"type": "items", "planId": "p"})


def test_members_share_the_class_of_their_payload(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "t"}}
    assert isinstance(acp.decode(acp.SessionUpdate, raw), acp.ContentChunk)
    assert issubclass(acp.SessionUpdateToolCallUpdate, acp.ToolCallUpdate)


@pytest.mark.parametrize(("protocol", "group"), [(1, "group"), (2, "groupId")])
def test_a_union_of_arrays_is_told_apart_by_its_items(packages: Packages, protocol: int, group: str) -> None:
    acp = bundled(packages, protocol)
    option = {"value": "v", "name": "n"}
    grouped = [{group: "g", "name": "n", "options": [option]}]
    for raw in ([option], [option, option], grouped):
        assert acp.encode(acp.decode(acp.SessionConfigSelectOptions, raw)) == raw
    assert type_name(acp.decode(acp.SessionConfigSelectOptions, grouped)[0]) == "SessionConfigSelectGroup"
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.SessionConfigSelectOptions, [option, *grouped])


def test_an_empty_array_fits_the_first_of_several_unless_all_want_items(packages: Packages) -> None:
    first, second = bundled(packages, 1), bundled(packages, 2)
    assert first.decode(first.SessionConfigSelectOptions, []) == []
    with pytest.raises(second.DecodeError):
        second.decode(second.SessionConfigSelectOptions, [])


@pytest.mark.parametrize(
    ("raw", "kind"), [("a", str), (1, int), (1.0, int), (1.5, float), (True, bool), (False, bool), (["a"], list)]
)
def test_a_union_of_scalars(packages: Packages, raw: Any, kind: type) -> None:
    acp = bundled(packages, 1)
    value = acp.decode(acp.ElicitationContentValue, raw)
    assert value == raw
    assert type(value) is kind


@pytest.mark.parametrize("raw", [None, {}, [1], [["a"]]])
def test_what_is_no_member_of_a_union_of_scalars(packages: Packages, raw: Any) -> None:
    acp = bundled(packages, 1)
    with pytest.raises(acp.DecodeError):
        acp.decode(acp.ElicitationContentValue, raw)


@pytest.mark.parametrize("raw", [{"any": [1]}, "text", 7, True, None, []])
def test_a_response_may_be_any_json(packages: Packages, raw: Any) -> None:
    """Of a method whose response the schema leaves open."""
    routed = {"x-side": "agent", "x-method": "pass"}
    acp = packages.of(
        schema_of(
            PassRequest={"type": "object", "properties": {}, **routed}, PassResponse={"description": "d", **routed}
        )
    )
    assert acp.AGENT_METHODS["pass"].result is Any
    assert acp.decode(acp.AGENT_METHODS["pass"].result, raw) == raw


# --- Absent, null, and defaults -------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rawInput", "rawOutput"])
@pytest.mark.parametrize("present", [{}, None, 0, False, "", [], {"a": None}])
def test_any_json_has_three_states(packages: Packages, key: str, present: Any) -> None:
    acp = bundled(packages, 1)
    attribute = {"rawInput": "raw_input", "rawOutput": "raw_output"}[key]
    absent = acp.decode(acp.ToolCallUpdate, {"toolCallId": "t"})
    assert getattr(absent, attribute) is acp.UNSET
    assert acp.encode(absent) == {"toolCallId": "t"}
    raw = {"toolCallId": "t", key: present}
    value = acp.decode(acp.ToolCallUpdate, raw)
    assert getattr(value, attribute) == present
    assert acp.encode(value) == raw


@pytest.mark.parametrize("protocol", [1, 2])
def test_null_is_a_value_and_absence_is_none(packages: Packages, protocol: int) -> None:
    acp = bundled(packages, protocol)
    for raw in ({"title": None}, {"title": "t"}, {}, {"title": None, "updatedAt": None, "_meta": None}):
        tagged = {"sessionUpdate": "session_info_update"} | raw
        assert acp.encode(acp.decode(acp.SessionUpdate, tagged)) == tagged


def test_null_is_no_value_where_the_schema_does_not_name_it(packages: Packages) -> None:
    acp = bundled(packages, 1)
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.McpServer, {"name": "n", "command": None, "args": [], "env": []})
    assert [reason.path for reason in caught.value.reasons] == [("command",)]
    assert "'http', 'sse'" in str(caught.value)


def test_nested_defaults_are_objects_of_their_class(packages: Packages) -> None:
    acp = bundled(packages, 1)
    value = acp.decode(acp.InitializeRequest, {"protocolVersion": 1})
    assert value == acp.InitializeRequest(protocol_version=1)
    assert value.client_capabilities == acp.ClientCapabilities()
    assert value.client_capabilities.fs == acp.FileSystemCapabilities(read_text_file=False, write_text_file=False)
    assert value.client_capabilities.terminal is False
    assert value.client_info is acp.UNSET


def test_defaults_are_made_explicit(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw = acp.encode(acp.decode(acp.InitializeResponse, {"protocolVersion": 1}))
    assert raw["authMethods"] == []
    assert raw["agentCapabilities"] == {}  # some editors ask whether a capability is there, and not for its value
    assert acp.encode(acp.decode(acp.InitializeResponse, raw)) == raw


def test_a_default_may_be_a_constant_of_an_enum(packages: Packages) -> None:
    acp = bundled(packages, 1)
    assert acp.encode(acp.decode(acp.ElicitationSchema, {})) == {"type": "object", "properties": {}}


def test_optional_arrays_without_default_stay_absent(packages: Packages) -> None:
    acp = bundled(packages, 1)
    raw = {"cwd": "/", "mcpServers": []}
    value = acp.decode(acp.NewSessionRequest, raw)
    assert value.additional_directories is acp.UNSET
    assert acp.encode(value) == raw
    assert acp.encode(acp.decode(acp.NewSessionRequest, raw | {"additionalDirectories": []})) == raw | {
        "additionalDirectories": []
    }
