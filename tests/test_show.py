"""`acpgen show`: a type or a method with its declaration, schema, users, gate and origin."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.config.keys import RoleChoice, role_defaults
from acpgen.emit.signatures import Signature, Signatures
from acpgen.ir.model import Options
from acpgen.pipeline import compile_protocol
from acpgen.roles import Role
from acpgen.schema.bundled import Release, list_releases
from acpgen.schema.data import data_folder
from acpgen.show.describe import Describer, MethodEntry, TypeEntry
from acpgen.show.display import render_json, render_text
from acpgen.sources.inputs import load
from tests.command_line import Outcome, run_acpgen
from tests.golden_cases import builds, built
from tests.support import fitting_fragments, model_of, package_files, schema_of

TEXT = {"type": "string"}


class Folder:
    """A working folder with its own schema."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: str) -> Outcome:
        return run_acpgen("show", *arguments, cwd=self.path)

    def text(self, *arguments: str) -> str:
        ran = self.run(*arguments)
        assert (ran.code, ran.stderr) == (0, "")
        return ran.stdout

    def entries(self, *arguments: str) -> list[dict[str, Any]]:
        found: dict[str, Any] = json.loads(self.text(*arguments, "--format", "json"))
        assert (found["format"], found["name"]) == (1, arguments[0])
        return list(found["entries"])

    def entry(self, *arguments: str) -> dict[str, Any]:
        (only,) = self.entries(*arguments)
        return only

    def schema(self, **definitions: Any) -> tuple[str, str]:
        """The options for a schema with these definitions."""
        (self.path / "own.json").write_text(json.dumps(schema_of(**definitions), indent=2), encoding="utf-8")
        return "--schema", "own.json"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def request(method: str, side: str = "agent", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "x-method": method, "x-side": side}


def tagged(target: str, tag: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"type": {"type": "string", "const": tag}},
        "required": ["type"],
        "allOf": [{"$ref": f"#/$defs/{target}"}],
    }


def unwrapped(text: str) -> str:
    """The text with all its words on one line."""
    return " ".join(text.split())


def section(text: str, title: str) -> list[str]:
    """The lines of a section."""
    _, _, rest = text.partition(f"\n\n{title}\n")
    assert rest, f"no section {title!r} in\n{text}"
    return rest.partition("\n\n" if not title.startswith("Python") else "\n\n\n")[0].splitlines()


@pytest.mark.parametrize("protocol", [1, 2])
def test_all_names_of_a_protocol_fit_into_80_columns(protocol: int) -> None:
    compiled = compile_protocol(load(SchemaChoice(protocol=protocol)), Options())
    describer = Describer(compiled.composed, compiled.model, Signatures(compiled.model))
    names = [*compiled.composed.root["$defs"], *(method.wire for method in compiled.model.methods)]
    assert len(names) > 100
    for name in names:
        too_long = [line for line in render_text(describer.describe(name)).splitlines() if len(line) > 80]
        assert not too_long


# --- Types -----------------------------------------------------------------------------------------------------------


def test_a_class_is_shown_as_the_package_has_it(folder: Folder) -> None:
    text = folder.text("NewSessionRequest")
    assert text.startswith("NewSessionRequest: class\n  from: ACP v1, 2026-11-02 (schema/v1/2026-11-02/schema.json:")
    assert """
Python, types.py
  class NewSessionRequest(WithMeta):
      cwd: str
      additional_directories: list[str] | UnsetType = UNSET
      mcp_servers: list[McpServer]

Attributes
  cwd: str, required
""" in text
    assert "  mcp_servers ('mcpServers' on the wire): list[McpServer], required\n      MCP servers for" in text
    assert section(text, "Used by") == ["  session/new, request from the client: NewSessionRequest"]


def test_the_place_is_the_line_of_the_definition(folder: Folder) -> None:
    origin = folder.entry("NewSessionRequest")["origin"]
    lines = (data_folder() / origin["place"]["file"]).read_text(encoding="utf-8").splitlines()
    assert lines[origin["place"]["line"] - 1] == '    "NewSessionRequest": {'
    assert (origin["pointer"], origin["name"], origin["extension"]) == (
        "/$defs/NewSessionRequest",
        "ACP v1, 2026-11-02",
        None,
    )


def test_a_tagged_union_has_its_members_and_the_way_to_it(folder: Folder) -> None:
    found = folder.entry("ContentBlock")
    assert (found["kind"], found["tag"]) == ("tagged union", "type")
    assert [(each["tag"], each["hint"]) for each in found["members"]][:2] == [
        ("text", "ContentBlockText"),
        ("image", "ContentBlockImage"),
    ]
    text = folder.text("ContentBlock")
    assert "\n  session/prompt, request from the client: PromptRequest.prompt → ContentBlock\n" in text
    assert "PromptRequest.prompt" in found["uses"]["fields"]


def test_a_member_of_a_union_is_a_type_of_its_own(folder: Folder) -> None:
    found = folder.entry("ContentBlockText")
    assert found["schema"]["pointer"] == "/$defs/ContentBlock/oneOf/0"
    assert found["uses"]["unions"] == ["ContentBlock"]
    assert "acpgen named a part of one" in found["note"]
    assert {each["name"]: each["default"] for each in found["fields"]}["type"] == '"text"'


def test_a_class_with_a_base_says_what_it_inherits(folder: Folder) -> None:
    found = folder.entry("SessionUpdateUserMessageChunk")
    assert {each["name"]: each["inherited_from"] for each in found["fields"]}["content"] == "ContentChunk"
    base = folder.entry("ContentChunk")
    assert "SessionUpdateUserMessageChunk" in base["uses"]["subclasses"]
    assert base["note"] is None
    uses = folder.entry("ContentBlock")["uses"]["fields"]
    assert "ContentChunk.content" in uses
    assert "SessionUpdateUserMessageChunk.content" not in uses


def test_a_closed_enum_has_its_values(folder: Folder) -> None:
    found = folder.entry("StopReason")
    assert found["kind"] == "closed enum"
    assert [each["value"] for each in found["values"]] == [
        *("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
    ]
    assert found["uses"]["fields"] == ["PromptResponse.stop_reason"]
    assert '\n  "end_turn"\n      The agent finished normally.\n' in folder.text("StopReason")


def test_an_open_enum_says_so(folder: Folder) -> None:
    colour = {"anyOf": [{"const": "red", "type": "string", "title": "Red"}, TEXT]}
    found = folder.entry("Colour", *folder.schema(Colour=colour))
    assert found["kind"] == "open enum"
    assert found["values"] == [{"value": "red", "title": "Red", "doc": ""}]
    assert found["signature"]["code"] == 'Colour: TypeAlias = Literal["red"] | str'


def test_an_alias_and_what_is_named_by_it(folder: Folder) -> None:
    options = folder.schema(
        Id={"type": "string", "minLength": 3}, Ids={"type": "array", "items": {"$ref": "#/$defs/Id"}}
    )
    text = folder.text("Id", *options)
    assert text.startswith("Id: alias\n  from: ACP v1, own.json (own.json:4:11, /$defs/Id)\n")
    assert section(text, "Python, types.py")[0] == "  Id: TypeAlias = Annotated[str, Bounds(min_length=3)]"
    assert section(text, "Used by") == ["  aliases: Ids", "  no message carries it"]
    assert folder.entry("Id", *options)["schema"]["schema"] == {"type": "string", "minLength": 3}


def test_a_definition_goes_by_the_name_in_the_schema_too(folder: Folder) -> None:
    options = folder.schema(**{"fine-thing": {"type": "object", "properties": {"a": TEXT}}})
    for name in ("fine-thing", "FineThing"):
        found = folder.entry(name, *options)
        assert (found["name"], found["schema"]["pointer"]) == ("FineThing", "/$defs/fine-thing")


def test_a_definition_without_a_type_shows_its_schema(folder: Folder) -> None:
    found = folder.entry("ClientRequest")
    assert (found["kind"], found["signature"]) == ("definition", None)
    assert found["schema"]["pointer"] == "/$defs/ClientRequest"
    assert "note: The package has no type for it: it is an envelope of JSON-RPC." in folder.text("ClientRequest")
    assert "its properties are those of ContentBlockText." in unwrapped(folder.text("TextContent"))


def test_the_shortest_way_is_told(folder: Folder) -> None:
    options = folder.schema(
        Leaf={"type": "object", "properties": {"a": TEXT}},
        Inner={"type": "object", "properties": {"leaf": {"$ref": "#/$defs/Leaf"}}},
        ShowRequest=request("show", inner={"$ref": "#/$defs/Inner"}),
        ShowResponse=request(
            "show", inner={"$ref": "#/$defs/Inner"}, leaves={"type": "array", "items": {"$ref": "#/$defs/Leaf"}}
        ),
    )
    assert section(folder.text("Leaf", *options), "Used by") == [
        "  attributes: Inner.leaf, ShowResponse.leaves",
        "  show, request from the client: ShowRequest.inner → Inner.leaf → Leaf",
        "  show, response from the agent: ShowResponse.leaves → Leaf",
    ]
    ways = [each["way"] for each in folder.entry("Leaf", *options)["uses"]["messages"]]
    assert ways[1] == [{"type": "ShowResponse", "field": "leaves"}, {"type": "Leaf", "field": None}]


def test_a_type_that_contains_itself_has_an_end(folder: Folder) -> None:
    tree = {"type": "object", "properties": {"more": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    options = folder.schema(Tree=tree, GrowNotification=request("grow", tree={"$ref": "#/$defs/Tree"}))
    assert section(folder.text("Tree", *options), "Used by") == [
        "  attributes: GrowNotification.tree, Tree.more",
        "  grow, notification from the client: GrowNotification.tree → Tree",
    ]


# --- Methods ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["session/new", "session_new"])
def test_a_request_by_wire_name_and_by_handler(folder: Folder, name: str) -> None:
    text = folder.text(name)
    assert text.startswith("session/new: request, handled by the agent, called by the client\n")
    owners = {"agent.py": "Agent(Handler)", "client.py": "RemoteAgent(Remote)", "proxy.py": "Proxy(Passing)"}
    for module, owner in owners.items():
        assert section(text, f"Python, {module}")[:2] == [
            f"  class {owner}:",
            "      async def session_new(self, params: NewSessionRequest) ->",
        ]
    assert [each["pointer"] for each in folder.entry(name)["schema"]] == [
        "/$defs/NewSessionRequest",
        "/$defs/NewSessionResponse",
    ]


def test_a_notification_returns_nothing(folder: Folder) -> None:
    found = folder.entry("session/cancel")
    assert (found["kind"], found["result"], found["handlers"], found["callers"]) == (
        *("notification", None),
        *(["agent"], ["client"]),
    )
    assert "async def session_cancel(self, params: CancelNotification) -> None: ..." in folder.text("session/cancel")


def test_a_method_of_both_peers_has_two_handlers_and_two_stubs(folder: Folder) -> None:
    found = folder.entry("$/cancel_request")
    assert found["handlers"] == ["agent", "client"]
    heads = [(each["module"], each["code"].partition("(")[0]) for each in found["signatures"]]
    assert heads == [
        *(("agent.py", "class Agent"), ("client.py", "class RemoteAgent")),
        *(("client.py", "class Client"), ("agent.py", "class RemoteClient")),
    ]


def test_one_wire_name_may_be_a_request_and_a_notification(folder: Folder) -> None:
    options = folder.schema(PingRequest=request("ping"), PingResponse=request("ping"), PingNotification=request("ping"))
    assert [(each["kind"], each["name"]) for each in folder.entries("ping", *options)] == [
        ("request", "ping"),
        ("notification", "ping_notification"),
    ]
    assert folder.entry("ping_notification", *options)["kind"] == "notification"


def test_a_name_that_is_a_type_and_a_method_shows_both(folder: Folder) -> None:
    options = folder.schema(Echo=TEXT, EchoNotification=request("Echo"))
    assert [each["kind"] for each in folder.entries("Echo", *options)] == ["alias", "notification"]
    text = folder.text("Echo", *options)
    assert text.startswith("Echo: alias\n")
    assert "\n\n\nEcho: notification, handled by the agent" in text


# --- Gates and extensions --------------------------------------------------------------------------------------------


def test_the_gate_of_a_method_and_what_opens_it(folder: Folder) -> None:
    needs = "needs: clientCapabilities.fs.readTextFile of InitializeRequest"
    assert f"\n  {needs}\n" in folder.text("fs/read_text_file")
    assert f"\n  {needs}\n" in folder.text("ReadTextFileResponse")
    opens = {each["name"]: each["opens"] for each in folder.entry("FileSystemCapabilities")["fields"]}
    assert opens["read_text_file"] == ["fs/read_text_file"]
    assert opens["meta"] == []


def test_the_gates_of_values_and_what_allows_them(folder: Folder) -> None:
    needs = "clientCapabilities.session.notices of InitializeRequest"
    assert f"\n  'notice' in SessionUpdate needs: {needs}\n" in unfolded(folder.text("SessionUpdate"))
    assert f"\n  'notice' in SessionUpdate needs: {needs}\n" in unfolded(folder.text("SessionUpdateNotice"))
    assert f"\n  needs: {needs}\n" in folder.text("notice")
    image = "agentCapabilities.promptCapabilities.image of InitializeResponse"
    assert f"\n  needs: {image}, in PromptRequest.prompt\n" in unfolded(folder.text("image"))
    (found,) = [each for each in folder.entry("PromptRequest")["gated_values"] if "image" in each["value"]]
    assert found["value"] == "'image' in PromptRequest.prompt"
    assert (found["needs"], found["source"]) == ({"text": image, "origin": None}, "/$defs/ContentBlock/oneOf/1")
    allows = {each["name"]: each["allows"] for each in folder.entry("ClientSessionCapabilities")["fields"]}
    assert allows["notices"] == ["'notice' in SessionUpdate"]
    assert folder.entry("SessionId")["gated_values"] == []


def test_the_gate_of_a_value_of_an_extension(folder: Folder) -> None:
    (found,) = [
        each
        for each in folder.entry("NewSessionRequest", "--extension", "system-prompt")["gated_values"]
        if each["value"] == "NewSessionRequest.systemPrompt"
    ]
    assert found["needs"]["origin"]["extension"] == "system-prompt@2026-11-02"
    assert found["needs"]["origin"]["pointer"] == "/values/InitializeResponse/NewSessionRequest.systemPrompt"


def unfolded(text: str) -> str:
    """The text with each line that was too long in one piece."""
    return re.sub(r"\n {6}(?=\S)", " ", text)


def test_a_type_with_a_way_around_the_gates_has_none(folder: Folder) -> None:
    found = folder.entry("SessionId")
    assert found["gates"] == []
    assert {each["gate"] for each in found["uses"]["messages"]} > {None}


def test_a_method_of_an_extension(folder: Folder) -> None:
    found = folder.entry("logout", "--release", "0.10.8", "--extension", "logout")
    assert (found["origin"]["name"], found["origin"]["extension"]) == ("logout, 2026-02-02", "logout@2026-02-02")
    assert found["origin"]["place"]["file"] == "schema/extensions/v1/logout@2026-02-02.json"
    assert found["gate"]["text"] == "agentCapabilities.authCapabilities.logout of InitializeResponse"
    assert found["gate"]["origin"]["pointer"] == "/gates/InitializeResponse/logout"


def test_a_method_that_no_class_handles_shows_its_types(folder: Folder) -> None:
    """As those between a proxy and its conductor."""
    found = {each["name"]: each for each in folder.entries("proxy/initialize", "--extension", "proxy-chains")}
    assert set(found) == {"InitializeProxyRequest", "InitializeProxyResponse"}
    for each in found.values():
        assert each["note"].startswith("It belongs to proxy/initialize, a method for the side 'proxy'")
    near = folder.run("proxy/initialise", "--extension", "proxy-chains")
    assert "did you mean 'proxy/initialize'?" in near.stderr


def test_a_field_of_an_extension_is_in_the_composed_schema_and_says_who_brought_it(folder: Folder) -> None:
    options = ("--release", "0.10.8", "--extension", "logout")
    found = folder.entry("AgentCapabilities", *options)
    assert found["origin"]["name"] == "ACP v1, 0.10.8"
    (extended,) = found["extended_by"]
    (field,) = (each for each in found["fields"] if each["wire"] == "authCapabilities")
    assert extended == field["origin"]
    assert (extended["extension"], extended["pointer"]) == (
        "logout@2026-02-02",
        "/changes/AgentCapabilities/properties/authCapabilities",
    )
    assert "authCapabilities" in found["schema"]["schema"]["properties"]
    assert "\n      from: extension logout@2026-02-02\n" in folder.text("AgentCapabilities", *options)
    assert folder.entry("AgentCapabilities", "--release", "0.10.8")["extended_by"] == []


def test_a_method_of_ones_own_extension(folder: Folder) -> None:
    fragment = {
        "fragment": 1,
        "id": "acme",
        "revision": "2026-12-01",
        "title": "Acme",
        "status": "draft",
        "protocols": [1],
        "$defs": {"XNotification": request("_acme/x", session={"$ref": "#/$defs/SessionId"})},
    }
    (folder.path / "acme.json").write_text(json.dumps(fragment, indent=2), encoding="utf-8")
    found = folder.entry("_acme/x", "--extension", "./acme.json")
    assert (found["name"], found["origin"]["place"]["file"]) == ("acme_x", "./acme.json")
    assert "XNotification.session" in folder.entry("SessionId", "--extension", "./acme.json")["uses"]["fields"]


# --- Where the options come from -------------------------------------------------------------------------------------


UNION = {
    "Text": {"type": "object", "properties": {"text": TEXT}},
    "Block": {"oneOf": [tagged("Text", "text")]},
}


def test_the_configuration_says_which_schema_and_which_types(folder: Folder) -> None:
    folder.schema(**UNION)
    (folder.path / "pyproject.toml").write_text(
        '[tool.acpgen]\nout = "acp"\nschema = "own.json"\nopen = true\n', encoding="utf-8"
    )
    assert len(folder.entry("Block")["members"]) == 2
    assert len(folder.entry("Block", "--no-config", "--schema", "own.json")["members"]) == 1


def test_outputs_that_differ_in_their_types_have_to_be_named(folder: Folder) -> None:
    folder.schema(Text=UNION["Text"])
    (folder.path / "pyproject.toml").write_text(
        '[tool.acpgen]\nschema = "own.json"\n'
        '[tool.acpgen.outputs.one]\nout = "one"\n'
        '[tool.acpgen.outputs.two]\nout = "two"\nkeep-unknown = true\n',
        encoding="utf-8",
    )
    ran = folder.run("Text")
    assert (ran.code, ran.stdout) == (2, "")
    assert "different choices of `open` or `keep-unknown`" in ran.stderr
    assert "--output one or two" in ran.stderr
    assert "extra: dict[str, Any]" in folder.text("Text", "--output", "two")
    assert "extra: dict[str, Any]" not in folder.text("Text", "--output", "one")


# --- Values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ("agent_message_chunk", "a tag of SessionUpdate, the 'sessionUpdate' of SessionUpdateAgentMessageChunk"),
        ("end_turn", "a value of StopReason"),
        ("allow_once", "a value of PermissionOptionKind"),
        ("Invalid params", "the error -32602, InvalidParamsError in Python"),
        ("InvalidParamsError", "the error -32602, InvalidParamsError in Python"),
    ],
)
def test_a_value_says_what_it_means_and_where_it_occurs(folder: Folder, value: str, meaning: str) -> None:
    first, *rest = " ".join(folder.text(value).split()).split(" from: ACP v1, 2026-11-02 ")
    assert first == f'"{value}": {meaning}'
    assert rest[0]
    carried = {"end_turn": "session/prompt, response from the agent: PromptResponse.stop_reason → StopReason"}
    assert carried.get(value, "") in rest[0]


def test_a_value_with_several_meanings_has_all_of_them(folder: Folder) -> None:
    found = folder.entry("completed")
    owners = ["CompactionStatus", "PlanEntryStatus", "ToolCallStatus"]
    assert sorted(each["owner"] for each in found["occurrences"]) == owners
    codes = json.loads(folder.run("--format", "json", "--", "-32602").stdout)["entries"][0]["occurrences"]
    assert [(each["kind"], each["owner"]) for each in codes] == [
        ("value", "ErrorCode"),
        ("error", "InvalidParamsError"),
    ]


def test_a_name_that_is_a_method_and_a_value_shows_both(folder: Folder) -> None:
    options = folder.schema(
        GoRequest={"type": "object", "x-method": "go", "x-side": "agent"},
        GoResponse={"type": "object", "x-method": "go", "x-side": "agent"},
        Light={"oneOf": [{"const": "go"}, {"const": "stop"}]},
        Lamp={"oneOf": [{"const": 7, "description": "Seven."}, {"const": 8}]},
    )
    method, value = folder.entries("go", *options)
    assert (method["wire"], [each["owner"] for each in value["occurrences"]]) == ("go", ["Light"])
    assert "Seven." in folder.text("7", *options)


def test_a_value_is_suggested(folder: Folder) -> None:
    assert "hint: did you mean 'end_turn'?" in folder.run("end_turns").stderr


# --- Names that are nothing, and hostile ones ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "near"),
    [("sesion/new", "session/new"), ("contentblock", "ContentBlock"), ("session_prompts", "session_prompt")],
)
def test_an_unknown_name_is_2_with_the_nearest(folder: Folder, name: str, near: str) -> None:
    ran = folder.run(name)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(
        f"error: {name!r} is no type, method or value here [unknown-name]\n  hint: did you mean '{near}'"
    )


def test_a_name_like_no_other_gets_the_list_instead(folder: Folder) -> None:
    ran = folder.run("qqqqqqqq")
    assert ran.code == 2
    assert "hint: `acpgen methods` lists the methods" in ran.stderr


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "line\nbreak", "", "x" * 100_000, "\u202egnal", "../../etc/passwd", "\udcff"]
)
def test_a_hostile_name_is_an_unknown_one(folder: Folder, name: str) -> None:
    ran = folder.run(name)
    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert all(line.isprintable() for line in ran.stderr.splitlines())
    assert len(ran.stderr) < 1000


EVIL = "a\x1b]0;owned\x07\u202e\u2028b"


def test_nothing_in_a_schema_acts_upon_the_terminal(folder: Folder) -> None:
    options = folder.schema(
        **{f"Evil{EVIL}": {"type": "object", "description": EVIL, "properties": {f"f{EVIL}": {"const": EVIL}}}},
        Tagged={"description": EVIL, "oneOf": [tagged("Plain", EVIL)]},
        Plain={"type": "object"},
        Colour={"oneOf": [{"const": EVIL, "title": EVIL, "description": EVIL}]},
        MNotification={**request(f"m{EVIL}"), "description": EVIL},
    )
    for name in (f"Evil{EVIL}", "Tagged", "Plain", "Colour", f"m{EVIL}"):
        text = folder.text(name, *options)
        assert all(line.isprintable() for line in text.removesuffix("\n").split("\n"))
        assert "\\u001b" in text or name == "Plain"
        assert folder.text(name, *options, "--format", "json").isascii()


HUGE: Mapping[str, dict[str, Any]] = {
    "Wide": {"type": "object", "properties": {f"field{index}": TEXT for index in range(400)}},
    "Long": {"type": "string", "description": "word " * 30_000},
    "Big": {"type": "string", "description": "x" * 1_000_000},
}


def test_the_text_is_complete(folder: Folder) -> None:
    """However long it is: a pager or `grep` can make less of it, nothing more."""
    wide = folder.text("Wide", *folder.schema(Wide=HUGE["Wide"]))
    assert all(f"field{index}" in wide for index in range(400))
    assert folder.text("Long", *folder.schema(Long=HUGE["Long"])).split().count("word") >= 30_000
    assert "x" * 1_000_000 in folder.text("Big", *folder.schema(Big=HUGE["Big"]))


def test_json_is_complete(folder: Folder) -> None:
    assert len(folder.entry("Wide", *folder.schema(Wide=HUGE["Wide"]))["fields"]) == 400


def test_a_long_way_is_cut_in_the_middle(folder: Folder) -> None:
    chain = {
        f"N{index}": {"type": "object", "properties": {"n": {"$ref": f"#/$defs/N{index + 1}"}}} for index in range(60)
    }
    options = folder.schema(**chain, N60=TEXT, GoNotification=request("go", n={"$ref": "#/$defs/N0"}))
    (carrier,) = folder.entry("N60", *options)["uses"]["messages"]
    steps = [step["type"] for step in carrier["way"]]
    assert (steps[0], steps[10], steps[-1], len(steps)) == ("GoNotification", "…", "N60", 21)


# --- What is shown is what is built ----------------------------------------------------------------------------------


def declared(node: ast.stmt) -> tuple[object, ...]:
    """The parts of a class or alias in `types.py`: bases, decorators, attributes and the parameters of `__init__`."""
    if isinstance(node, ast.AnnAssign):
        return ("alias", ast.unparse(node))
    assert isinstance(node, ast.ClassDef)
    attributes = [ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign)]
    inits = [ast.unparse(each.args) for each in node.body if isinstance(each, ast.FunctionDef)]
    return ("class", [*map(ast.unparse, node.bases)], [*map(ast.unparse, node.decorator_list)], attributes, inits)


def names_in(module: Path) -> Mapping[str, ast.stmt]:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return {
        node.name if isinstance(node, ast.ClassDef) else ast.unparse(node.target): node
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.AnnAssign))
    }


def heads(node: ast.stmt) -> Mapping[str, str]:
    """The signatures of the asynchronous methods of a class."""
    assert isinstance(node, ast.ClassDef)
    return {
        each.name: f"({ast.unparse(each.args)}) -> {ast.unparse(each.returns) if each.returns else ''}"
        for each in node.body
        if isinstance(each, ast.AsyncFunctionDef)
    }


def sources_of(build: list[str]) -> SchemaChoice:
    options = dict(zip(build[::2], build[1::2], strict=True))
    extensions = tuple(value for key, value in zip(build[::2], build[1::2], strict=True) if key == "--extension")
    return SchemaChoice(
        protocol=int(options.get("--protocol", "1")), release=options.get("--release"), extensions=extensions
    )


def options_of(build: list[str]) -> Options:
    """The options for types of a package in generated/."""
    role = next((each for each in RoleChoice if each.value in build), RoleChoice.AGENT)
    defaults = role_defaults(role.roles)
    return Options.for_roles(role.roles, open=defaults["open"], keep_unknown=defaults["keep-unknown"])


def only_statement(signature: Signature) -> ast.stmt:
    (node,) = ast.parse(signature.code).body
    return node


@pytest.mark.parametrize("name", [name for name, options in builds().items() if options.count("--protocol") < 2])
def test_every_signature_is_that_of_the_generated_package(name: str) -> None:
    model, _ = model_of(sources_of(builds()[name]), options_of(builds()[name]))
    signatures = Signatures(model)
    folder = built(name)
    types = names_in(folder / "types.py")
    for definition in model.definitions:
        assert declared(only_statement(signatures.of_type(definition))) == declared(types[definition.name])
    modules = {
        path.name: names_in(path) for path in folder.glob("*.py") if path.stem in [role.record.name for role in Role]
    }
    compared = 0
    for method in model.methods:
        for signature in signatures.of_method(method):
            shown = only_statement(signature)
            assert isinstance(shown, ast.ClassDef)
            if signature.module in modules:
                there = modules[signature.module][shown.name]
                assert isinstance(there, ast.ClassDef)
                assert [*map(ast.unparse, shown.bases)] == [*map(ast.unparse, there.bases)]
                (known,) = heads(shown)
                assert heads(shown) == {known: heads(there)[known]}
                compared += 1
    assert compared >= len(model.methods) - 1  # a proxy has no method that cancels requests


@pytest.mark.full
def test_signatures_follow_the_options_for_types(tmp_path: Path) -> None:
    options = Options(open=True, keep_unknown=True)
    model, _ = model_of(SchemaChoice(), options)
    signatures = Signatures(model)
    (tmp_path / "types.py").write_text(package_files(SchemaChoice(), options=options)["types.py"], encoding="utf-8")
    types = names_in(tmp_path / "types.py")
    for definition in model.definitions:
        assert declared(only_statement(signatures.of_type(definition))) == declared(types[definition.name])


OLDEST = min(release.name for release in list_releases())


def every_bundled() -> Iterator[Any]:
    for release in list_releases():
        for extended in (False, True):
            yield pytest.param(
                release,
                extended,
                id=f"v{release.protocol}-{release.name}{'-extended' if extended else ''}",
                marks=[] if extended and release.name != OLDEST else [pytest.mark.deep],
            )


@pytest.mark.full
@pytest.mark.parametrize(("release", "extended"), list(every_bundled()))
def test_every_name_can_be_shown(release: Release, extended: bool) -> None:
    extensions = fitting_fragments(release) if extended else ()
    sources = SchemaChoice(protocol=release.protocol, release=release.name, extensions=extensions)
    compiled = compile_protocol(load(sources), Options())
    composed, model = compiled.composed, compiled.model
    describer = Describer(composed, model, Signatures(model))
    methods = {name for method in model.methods for name in (method.wire, method.name)}
    for name in sorted({*model.by_name, *composed.root["$defs"], *methods}):
        entries = describer.describe(name)
        for entry in entries:
            assert entry.origin.place is not None
            match entry:
                case TypeEntry(uses=uses):
                    assert all(each.way[-1].type == entry.name for each in uses.messages)
                case MethodEntry():
                    of_proxies = [each for each in entry.signatures if each.module.endswith("proxy.py")]
                    assert len(of_proxies) == (0 if entry.wire.startswith("$/") else len(entry.handlers))
                    assert len(entry.signatures) == 2 * len(entry.handlers) + len(of_proxies)
        text = render_text(entries)
        assert "more lines (--format json" not in text
        assert json.loads(render_json(name, entries))["name"] == name


@pytest.mark.parametrize(
    ("words", "origin"),
    [
        ("plan_update -e plan-operations", "plan-operations, 2026-11-02"),
        ("agent_message_chunk -e plan-operations", "ACP v1, 2026-11-02"),
        ("end_turn -e plan-operations", "ACP v1, 2026-11-02"),
        ("spent -e ./acme.json", "acme, 1"),
        ("-32603 -e plan-operations", "ACP v1, 2026-11-02"),
    ],
)
def test_a_value_of_an_extension_says_who_brought_it(tmp_path: Path, words: str, origin: str) -> None:
    spent = {"type": "string", "const": "spent", "description": "The budget is spent."}
    head = {"fragment": 1, "id": "acme", "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    (tmp_path / "acme.json").write_text(json.dumps({**head, "changes": {"StopReason": {"members": [spent]}}}))
    name, *options = words.split()
    shown = run_acpgen("show", *options, "--", name, cwd=tmp_path)
    assert shown.code == 0, shown.stderr
    assert shown.stdout.splitlines()[1:3].count(f"  from: {origin}") == 1, shown.stdout
