"""`acpgen docs`: the page of a composed protocol. `test_reference_browser.py` looks at it in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.schema.bundled import Release, find_release, list_releases
from tests.command_line import Outcome, run_acpgen
from tests.support import Packages, bundled_fragment, fitting_fragments, schema_of
from tests.test_probes import contains

TEXT = {"type": "string"}
VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """A page: its elements, and the text of each article and property by its anchor."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.tags: list[tuple[str, dict[str, str]]] = []
        self._texts: defaultdict[str, list[str]] = defaultdict(list)
        self._open: list[tuple[str, dict[str, str]]] = []
        self.feed(source)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.tags.append((tag, values))
        if tag not in VOID:
            self._open.append((tag, values))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag
        if tag in {"dd", "dt", "figcaption", "li", "p", "td"}:
            self.handle_data(" ")

    def handle_data(self, data: str) -> None:
        for _, values in self._open:
            for key in values.keys() & {"id", "data-json", "data-python"}:
                self._texts[f"{key} {values[key]}"].append(data)

    def text(self, anchor: str) -> str:
        return "".join(self._texts[f"id {anchor}"])

    def example(self, kind: str, name: str, protocol: int = 1) -> str:
        """The example of a type, "json" or "python"."""
        return "".join(self._texts[f"data-{kind} v{protocol} {name}"])

    def examples(self, protocol: int = 1) -> set[str]:
        """The types that have an example."""
        prefix = f"data-json v{protocol} "
        return {key.removeprefix(prefix) for key in self._texts if key.startswith(prefix)}

    def words(self, anchor: str) -> str:
        """The text of an element, with single spaces."""
        return " ".join(self.text(anchor).split())

    def values(self, tag: str, key: str) -> list[str]:
        return [values[key] for name, values in self.tags if name == tag and key in values]

    @property
    def ids(self) -> list[str]:
        return [values["id"] for _, values in self.tags if "id" in values]


def docs(folder: Path, *arguments: str) -> Page:
    """The page that `acpgen docs` writes in a folder."""
    ran = run_acpgen("docs", "--out", "site", *arguments, cwd=folder)
    assert (ran.code, ran.stdout) == (0, ""), ran.stderr
    return Page((folder / "site" / "index.html").read_text(encoding="utf-8"))


def page_of(folder: Path, *arguments: str, **definitions: Any) -> Page:
    """The page of a schema with these definitions."""
    (folder / "own.json").write_text(json.dumps(schema_of(**definitions)), encoding="utf-8")
    return docs(folder, "--schema", "own.json", *arguments)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The bundled protocols."""
    return docs(tmp_path_factory.mktemp("both"), "--protocol", "1", "--protocol", "2")


# --- Content --------------------------------------------------------------------------------------------------------


def test_a_method_has_its_direction_capability_and_origin(both: Page) -> None:
    text = both.words("v1/methods/session/load")
    assert "request client → agent" in text
    assert "Direction called by the client, handled by the agent" in text
    capability = "AgentCapabilities.loadSession (agentCapabilities.loadSession of InitializeResponse)"
    assert f"Capability {capability} Origin ACP v1, 2026-11-02" in text
    assert "Params LoadSessionRequest Result LoadSessionResponse" in text
    assert "async def session_load(self, params: LoadSessionRequest) -> LoadSessionResponse" in text
    assert "Direction called by the agent, handled by the client" in both.words("v1/methods/session/update")
    both = both.words("v1/methods/%24/cancel_request")
    assert "notification agent → client client → agent" in both or "client → agent agent → client" in both


def test_a_type_names_the_values_in_it_that_need_a_capability(both: Page) -> None:
    update = both.words("v1/types/SessionUpdate")
    assert "'notice' in SessionUpdate needs ClientSessionCapabilities.notices" in update
    assert "'http' in McpServer needs McpCapabilities.http" in both.words("v2/types/McpServerHttp")
    opens = both.words("v2/types/PromptCapabilities.image")
    assert "Capability for 'image' in PromptRequest.prompt" in opens


def test_the_origin_of_an_extension_is_shown(tmp_path: Path) -> None:
    vendor = {"fragment": 1, "id": "acme", "revision": "7", "title": "Acme's methods", "status": "vendor"}
    request = {"type": "object", "x-method": "_acme/go", "x-side": "agent"}
    added = {"AcmeGoRequest": request, "AcmeGoResponse": {"type": "object", **request}}
    change = {"SetSessionModeResponse": {"properties": {"acme": TEXT}}}
    fragment = {**vendor, "protocols": [1], "$defs": added, "changes": change}
    (tmp_path / "acme.json").write_text(json.dumps(fragment), encoding="utf-8")
    page = docs(tmp_path, "--extension", "auth-state@2026-03-07", "--extension", "./acme.json")
    assert "Origin acme@7 private extension" in page.words("v1/methods/_acme/go")
    assert "Origin auth-state@2026-03-07 draft extension" in page.words("v1/methods/getAuthState")
    assert "private extension" in page.words("v1/types/SetSessionModeResponse.acme")
    assert "Extended by acme@7." in page.words("v1/types/SetSessionModeResponse")
    assert {"draft", "vendor"} <= {word for each in page.values("span", "class") for word in each.split()}


def test_a_type_says_what_may_be_absent_or_null_and_what_readers_forgive(tmp_path: Path) -> None:
    forgiving = {"type": "string", "default": "slow", "x-deserialize-default-on-error": True}
    items = {"type": "array", "items": TEXT, "x-deserialize-skip-invalid-items": True}
    page = page_of(
        tmp_path,
        Mode={"oneOf": [{"const": "slow", "description": "With care."}, {"const": "fast"}]},
        Base={"type": "object", "properties": {"theId": TEXT}, "required": ["theId"]},
        Thing={
            "type": "object",
            "allOf": [{"$ref": "#/$defs/Base"}],
            "properties": {
                "speed": forgiving,
                "items": {**items, "x-deserialize-default-on-null": True},
                "note": {"type": ["string", "null"], "description": "A note about `Mode`."},
                "mode": {"$ref": "#/$defs/Mode"},
            },
            "required": ["mode"],
        },
        Holder={"type": "object", "properties": {"it": {"$ref": "#/$defs/Thing"}}},
        Alias={"type": "integer", "minimum": 3},
        Tagged={"type": "object", "properties": {"kind": {"const": "tagged"}}, "required": ["kind"]},
        Either={"anyOf": [{"$ref": "#/$defs/Base"}, {"$ref": "#/$defs/Alias"}]},
    )
    assert page.words("v1/types/Thing.mode") == "mode Mode required"
    assert page.words("v1/types/Thing.speed") == (
        'speed str Default: "slow" A value that does not fit counts as "slow".'
    )
    skipped = "Items that do not fit are left out. null counts as absent."
    assert page.words("v1/types/Thing.items") == f"items list[str] {skipped}"
    assert page.words("v1/types/Thing.note") == "note str | None nullable A note about Mode."
    assert page.words("v1/types/Thing.theId") == "theId str requiredPython the_id Inherited from Base"
    assert page.words("v1/types/Tagged.kind") == 'kind Literal["tagged"] required'
    assert "Used by Properties Holder.it" in page.words("v1/types/Thing")
    assert '"slow" With care. "fast"' in page.words("v1/types/Mode")
    assert "Base Alias" in page.words("v1/types/Either")
    assert "Unions Either" in page.words("v1/types/Alias")
    assert page.example("json", "Alias") == "3"
    assert "v1/types/Mode" in {each.removeprefix("#") for each in page.values("a", "href")}


def test_definitions_without_a_type_and_errors_are_there(both: Page) -> None:
    assert "its properties are those of ContentBlockText" in both.words("v1/types/TextContent")
    assert "MethodNotFoundError" in both.words("v2/errors/-32601")


def test_tags_and_values_have_anchors(both: Page) -> None:
    assert "agent_message_chunkSessionUpdateAgentMessageChunk" in both.words(
        "v1/types/SessionUpdate.agent_message_chunk"
    )
    assert '"end_turn"' in both.words("v1/types/StopReason.end_turn")
    assert "-32602" in both.words("v2/types/ErrorCode.-32602")


def test_links_lead_somewhere_and_anchors_are_unique(both: Page) -> None:
    assert len(both.ids) == len(set(both.ids)) > 1500
    links = both.values("a", "href")
    assert len(links) > 5000
    assert set(links) <= {f"#{each}" for each in both.ids}


def test_the_page_loads_nothing(both: Page) -> None:
    assert both.values("link", "href")[0].startswith("data:")
    assert [values for tag, values in both.tags if "src" in values or "style" in values] == []
    assert "url(" not in both.source
    (policy,) = [values["content"] for tag, values in both.tags if values.get("http-equiv")]
    for tag in ("style", "script"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", both.source, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")


# --- Examples -------------------------------------------------------------------------------------------------------


def check_examples(page: Page, packages: Packages, sources: SchemaChoice) -> None:
    """The JSON of each example decodes to the value, which encodes to it without what capabilities are by default."""
    made, protocol = packages(sources), sources.protocol
    names = page.examples(protocol)
    types = {each.split("/")[-1] for each in page.ids if re.fullmatch(rf"v{protocol}/types/\w+", each)}
    untyped = {each for each in types if "The package has no type for it" in page.text(f"v{protocol}/types/{each}")}
    assert types - untyped == names
    assert len(names) > 100
    for name in sorted(names):
        raw = json.loads(page.example("json", name, protocol))
        value = eval(page.example("python", name, protocol), vars(made).copy())
        assert made.decode(getattr(made, name), raw) == made.decode(getattr(made, name), made.encode(value)) == value
        assert contains(raw, made.encode(value)), name


@pytest.mark.parametrize("protocol", [1, 2])
def test_each_example_decodes_to_the_value_that_python_makes(both: Page, packages: Packages, protocol: int) -> None:
    check_examples(both, packages, SchemaChoice(protocol=protocol))


@pytest.mark.full
@pytest.mark.parametrize(
    "release",
    [
        pytest.param(each, id=f"v{each.protocol}-{each.name}", marks=[] if each == newest else [pytest.mark.deep])
        for each in list_releases()
        for newest in [find_release(each.protocol)]
    ],
)
def test_examples_of_all_extensions_decode(release: Release, packages: Packages, tmp_path: Path) -> None:
    extensions = fitting_fragments(release)
    options = [word for each in extensions for word in ("--extension", each)]
    page = docs(tmp_path, "--protocol", str(release.protocol), "--release", release.name, *options)
    sources = SchemaChoice(protocol=release.protocol, release=release.name, extensions=extensions)
    check_examples(page, packages, sources)
    outside = {link for link in page.values("a", "href") if not link.startswith("#")}
    assert outside <= {bundled_fragment(each, release.protocol).rfd for each in extensions}
    assert {f"#{each}" for each in page.ids} >= set(page.values("a", "href")) - outside


def test_a_type_without_a_small_value_has_no_example(tmp_path: Path) -> None:
    reference = {"$ref": "#/$defs/Endless"}
    page = page_of(
        tmp_path,
        Endless={"type": "object", "properties": {"next": reference}, "required": ["next"]},
        Large={"type": "object", "properties": {"text": {**TEXT, "minLength": 100_000}}, "required": ["text"]},
        Never={"type": "object", "properties": {"a": TEXT}, "required": ["a"], "not": {"required": ["a"]}},
        List={"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/List"}, {"type": "null"}]}}},
        Tree={
            "type": "object",
            "properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
            "required": ["parts"],
        },
    )
    assert page.examples() == {"List", "Tree"}
    assert json.loads(page.example("json", "Tree"))["parts"][0]["parts"]


# --- Hostile texts --------------------------------------------------------------------------------------------------

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"'><svg/onload=alert(1)>",
    "[click](javascript:alert(1)) ![i](https://evil.example/x.png)",
    "https://evil.example/ <https://evil.example/>",
    "{{ 7 * 7 }} {% raw %} <!-- -->",
    "`code <b>` and `unclosed",
    "]]> &lt;b&gt; &#60;",
)
HIDDEN = "nul\x00 escape\x1b[31m bidi\u202e\u2066 zero\u200b mark\ufeff tag\U000e0001 line\u2028 c1\x9b del\x7f"


RFD = "https://example.com/\"onclick='alert(1)'"


def hostile_page(folder: Path) -> Page:
    text = "\n\n".join((*HOSTILE, HIDDEN))
    properties = {each: {**TEXT, "description": text, "title": each} for each in ("a\"b'><i>", "x</script>", "p q#%2e")}
    members = [{"const": each, "title": each, "description": each} for each in HOSTILE]
    tagged = {"type": "object", "properties": {"<b>": {"const": HOSTILE[0]}}, "required": ["<b>"]}
    message = {"type": "object", "x-method": "<i>/\"'&\u202e x", "x-side": "agent", "description": text}
    fragment = {"fragment": 1, "id": "evil", "revision": "1", "title": HOSTILE[0], "status": "vendor"}
    extra = {
        "protocols": [1],
        "rfd": RFD,
        "$defs": {"Added": {"type": "object", "description": text}},
    }
    (folder / "evil.json").write_text(json.dumps({**fragment, **extra}), encoding="utf-8")
    return page_of(
        folder,
        "--extension",
        "./evil.json",
        Thing={"type": "object", "description": text, "properties": properties, "required": list(properties)},
        Mode={"oneOf": members},
        Default={"type": "object", "properties": {"x": {**TEXT, "default": HIDDEN + HOSTILE[0]}}},
        Tagged={"oneOf": [{**tagged, "title": "One"}], "description": text},
        GoRequest=message,
        GoResponse=message,
    )


def test_hostile_texts_stay_text(tmp_path: Path) -> None:
    page = hostile_page(tmp_path)
    plain = page_of(tmp_path, Thing={"type": "object", "properties": {"a": TEXT}})
    known = {tag for tag, _ in plain.tags} | {"table", "thead", "tbody", "tr", "th", "td", "h5", "dl", "dt", "dd"}
    assert {tag for tag, _ in page.tags} <= known
    assert [tag for tag, _ in page.tags].count("script") == 1 == page.source.count("</script>")
    keys = {key for _, values in page.tags for key in values}
    assert not any(key.startswith("on") for key in keys)
    links = [each for tag in ("a", "link") for each in page.values(tag, "href")]
    assert all(each == RFD or each.startswith(("#", "data:image/svg+xml,")) for each in links)
    assert {each[1:] for each in links if each.startswith("#")} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    shown = page.text("v1/types/Thing")
    for text in HOSTILE:
        assert text.replace("`", "") in shown.replace("`", "")
    assert "nul\\u0000 escape\\u001b[31m bidi\\u202e\\u2066 zero\\u200b mark\\ufeff tag\\udb40\\udc01" in shown
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", page.source) == []


def test_hostile_examples_decode(tmp_path: Path, packages: Packages) -> None:
    """Escapes of invisible characters leave JSON and Python what they are."""
    page = hostile_page(tmp_path)
    made = packages(SchemaChoice(schema=tmp_path / "own.json"))
    names = page.examples() - {"Added"}
    assert {"Thing", "Mode", "Default"} <= names
    for name in names:
        value = eval(page.example("python", name), vars(made).copy())
        assert made.encode(value) == json.loads(page.example("json", name))


# --- Two protocols --------------------------------------------------------------------------------------------------


def test_two_protocols_are_compared(both: Page) -> None:
    only = both.source.partition('id="v1-v2"')[2].partition("<h3>")[0]
    assert 'Methods only in v1</dt><dd><code><a href="#v1/methods/fs/read_text_file">' in only
    assert '<a href="#v2/methods/terminal/cancel">' in only.partition("Methods only in v2")[2]
    assert "session: is the new name of sessionCapabilities" in both.words("v1-v2/types/AgentCapabilities")
    renamed = "v1-v2/types/CancelSessionNotification"
    assert "v1 CancelNotification" in both.words(renamed)
    assert "differs in v2" in both.words("v1/types/CancelNotification")
    assert both.values("a", "href").count(f"#{renamed}") == 3
    assert "differs in v1" in both.words("v2/methods/session/new")
    assert "differs" not in both.words("v1/methods/fs/read_text_file")
    assert "# v1/agent.py" in both.words("v1/methods/session/new")


def test_one_protocol_is_compared_with_nothing(tmp_path: Path) -> None:
    page = page_of(tmp_path, Thing={"type": "object", "properties": {}})
    assert [each for each in page.values("a", "class") if "change" in each] == []
    assert "What differs" not in page.text("main")
    assert page.ids.count("v1/types/Thing") == 1


# --- Writing --------------------------------------------------------------------------------------------------------


def own(folder: Path) -> Outcome:
    (folder / "own.json").write_text(json.dumps(schema_of(Thing=TEXT)), encoding="utf-8")
    return run_acpgen("docs", "--schema", "own.json", "--out", "site", cwd=folder)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    texts = set()
    (tmp_path / "own.json").write_text(json.dumps(schema_of(Thing=TEXT, Other=TEXT)), encoding="utf-8")
    for seed in ("0", "1"):
        command = [sys.executable, "-m", "acpgen", "docs", "--schema", "own.json", "--out", seed]
        subprocess.run(command, cwd=tmp_path, check=True, env={**os.environ, "PYTHONHASHSEED": seed}, timeout=60)
        texts.add((tmp_path / seed / "index.html").read_bytes())
    assert len(texts) == 1


def test_an_old_page_is_replaced_and_other_files_stay(tmp_path: Path) -> None:
    page = tmp_path / "site" / "index.html"
    page.parent.mkdir()
    (page.parent / "CNAME").write_text("acp.example", encoding="utf-8")
    page.write_text("<!-- Generated by acpgen. Do not edit. -->\nold", encoding="utf-8")
    assert own(tmp_path).code == 0
    assert "v1/types/Thing" in page.read_text(encoding="utf-8")
    assert {each.name for each in page.parent.iterdir()} == {"CNAME", "index.html"}
    before = page.stat()
    assert own(tmp_path).code == 0
    assert (page.stat().st_mtime_ns, page.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_foreign_page_is_not_overwritten(tmp_path: Path) -> None:
    page = tmp_path / "site" / "index.html"
    page.parent.mkdir()
    page.write_text("<!doctype html>mine", encoding="utf-8")
    ran = own(tmp_path)
    assert (ran.code, "[foreign-file]" in ran.stderr) == (2, True)
    assert page.read_text(encoding="utf-8") == "<!doctype html>mine"


def test_the_folder_of_a_package_is_refused(tmp_path: Path) -> None:
    assert own(tmp_path).code == 0
    built = run_acpgen("build", "--schema", "own.json", "--out", "acp", "--no-runtime", cwd=tmp_path)
    assert built.code == 0, built.stderr
    before = sorted(each.name for each in (tmp_path / "acp").iterdir())
    ran = run_acpgen("docs", "--schema", "own.json", "--out", "acp", cwd=tmp_path)
    assert (ran.code, "[folder-refused]" in ran.stderr) == (2, True)
    assert sorted(each.name for each in (tmp_path / "acp").iterdir()) == before


def test_the_configuration_selects_the_schema(tmp_path: Path) -> None:
    (tmp_path / "own.json").write_text(json.dumps(schema_of(Configured=TEXT)), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.acpgen]\nschema = "own.json"\nout = "acp"\n', encoding="utf-8")
    assert "v1/types/Configured" in docs(tmp_path).ids
