"""The bundled schemas: upstream's structure to the letter, and descriptions in words of our own."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Enum
from acpgen.schema.bundled import Release, list_releases
from acpgen.schema.walk import walk
from tests.needs import lacks, need
from tests.published import FILES, PAGES, available, published, shared
from tests.support import fitting_fragments, model_of

RELEASES = list_releases()
EVERY = pytest.mark.parametrize("release", RELEASES, ids=lambda release: f"v{release.protocol}/{release.name}")
SDK = "@agentclientprotocol/sdk@2.4.0"
META = "Room for extensions: a peer ignores the keys that it does not know."
RUN = 6
"""So many words in a row may be the same by chance; more are a quotation."""


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def upstream_of(release: Release) -> Any:
    return read(published(f"v{release.protocol}/{release.name}/schema.json"))


def described(root: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schema nodes with a pointer each; a property called `description` is no description."""
    return ((pointer, node) for pointer, node in walk(root) if isinstance(node, dict))


def without_descriptions(node: Any, *, is_map: bool = False) -> Any:
    match node:
        case dict():
            return {
                key: without_descriptions(child, is_map=key in ("properties", "$defs") and not is_map)
                for key, child in node.items()
                if is_map or key != "description"
            }
        case list():
            return [without_descriptions(item) for item in node]
    return node


def exactly(node: Any) -> str:
    """The JSON text of a schema: to Python, `1`, `1.0` and `True` were equal."""
    return json.dumps(without_descriptions(node), sort_keys=True)


def test_what_is_bundled() -> None:
    assert [(release.protocol, release.name) for release in RELEASES] == [
        (1, "0.10.8"),
        (1, "2026-11-02"),
        (2, "2026-11-02"),
    ]


# --- Structure ------------------------------------------------------------------------------------------------------


def test_descriptions_alone_are_left_out_of_the_comparison() -> None:
    one = {"description": "a", "properties": {"description": {"const": 1, "description": "b"}}, "title": "t"}
    assert json.loads(exactly(one)) == {"properties": {"description": {"const": 1}}, "title": "t"}
    assert exactly({"default": 1}) != exactly({"default": True})


@EVERY
def test_the_structure_is_that_of_the_published_schema(release: Release) -> None:
    assert exactly(read(release.schema)) == exactly(upstream_of(release))


@EVERY
def test_definitions_and_properties_stand_in_the_published_order(release: Release) -> None:
    ours, theirs = dict(described(read(release.schema))), dict(described(upstream_of(release)))
    assert list(read(release.schema)["$defs"]) == list(upstream_of(release)["$defs"])
    for pointer, node in ours.items():
        assert list(node.get("properties", {})) == list(theirs[pointer].get("properties", {})), pointer


@pytest.fixture(scope="module")
def official(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official TypeScript SDK, unpacked."""
    need("npm")
    folder = tmp_path_factory.mktemp("sdk")
    packed = subprocess.run(
        ["npm", "pack", "--silent", SDK], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    if packed.returncode:
        lacks("registry", f"npm pack failed: {packed.stderr.strip()[-200:]}")
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as found:
        found.extractall(folder, filter="data")
    return folder


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_newest_release_is_what_the_official_sdk_has(official: Path, protocol: int) -> None:
    found = [path for path in official.rglob("schema.json") if f"v{protocol}" in path.parts]
    assert len(found) == 1
    newest = [release for release in RELEASES if release.protocol == protocol][-1]
    assert exactly(read(newest.schema)) == exactly(read(found[0]))


# --- Descriptions ---------------------------------------------------------------------------------------------------


@EVERY
def test_everything_that_becomes_code_is_described(release: Release) -> None:
    model, _ = model_of(SchemaChoice(protocol=release.protocol, release=release.name))
    assert [each.name for each in model.definitions if not each.doc] == []
    assert [each.wire for each in model.methods if not each.doc] == []
    nodes = dict(described(read(release.schema)))  # `enum` leaves no room for descriptions, `const` does
    enums = [each for each in model.definitions if isinstance(each, Enum) and "enum" not in nodes[each.pointer]]
    members = [(each, member) for each in enums for member in each.members]
    assert len(members) > 20
    assert [(each.name, member.value) for each, member in members if not member.doc] == []
    assert [code.name for code in model.errors.codes if not code.doc] == []


@EVERY
def test_nothing_is_without_description_that_upstream_describes(release: Release) -> None:
    ours = dict(described(read(release.schema)))
    lacking = [
        pointer
        for pointer, node in described(upstream_of(release))
        if node.get("description") and not ours[pointer].get("description")
    ]
    assert lacking == []


@EVERY
def test_descriptions_are_text(release: Release) -> None:
    for pointer, node in described(read(release.schema)):
        if "description" in node:
            text = node["description"]
            assert isinstance(text, str), pointer
            assert text == text.strip() != "", pointer
            assert text[0].isupper() or text[0] in "`$[({\"'" or text[0].isdigit(), pointer
            assert text.endswith((".", ":", "`", ")")), pointer


@EVERY
def test_meta_is_described_by_one_sentence(release: Release) -> None:
    texts = [
        node["description"]
        for pointer, node in described(read(release.schema))
        if pointer.endswith("/properties/_meta") and "description" in node
    ]
    assert len(texts) > 50
    assert [text for text in texts if not text.startswith(META)] == []
    assert texts.count(META) > 0.9 * len(texts)


def runs(text: str) -> set[tuple[str, ...]]:
    """The runs of so many words; what stands in backticks is a name, and no word."""
    words = re.findall(r"[a-z0-9']+", re.sub(r"`[^`]*`", " ` ", text).lower().replace("’", "'"))
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


@cache
def published_runs() -> frozenset[tuple[str, ...]]:
    """Those of all upstream descriptions, in whatever release."""
    texts = {
        text
        for path in available()
        for _, node in described(read(path))
        if isinstance(text := node.get("description"), str)
    }
    return frozenset(run for text in texts for run in runs(text))


def test_runs_of_words() -> None:
    assert runs("One two, three `x_y` four five") == set()
    assert runs("One two, three: four-five Six.") == {("one", "two", "three", "four", "five", "six")}


@EVERY
def test_no_description_quotes_upstream(release: Release) -> None:
    published(FILES[-1])
    assert len(published_runs()) > 1000
    quotes = {
        pointer: [" ".join(run) for run in runs(node["description"]) & published_runs()]
        for pointer, node in described(read(release.schema))
        if "description" in node
    }
    assert {pointer: found for pointer, found in quotes.items() if found} == {}


def test_no_extension_quotes_upstream() -> None:
    """Nor the RFDs, which the extensions follow."""
    pages = [shared(f"rfd/{page}").read_text(encoding="utf-8") for page in PAGES]
    known = published_runs() | {run for page in pages for run in runs(page)}
    files = sorted((RELEASES[0].schema.parents[2] / "extensions").rglob("*.json"))
    assert files
    quotes = {
        (path.name, pointer): found
        for path in files
        for pointer, text in texts_of(read(path))
        if (found := [" ".join(run) for run in runs(text) & known])
    }
    assert quotes == {}


def texts_of(node: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    match node:
        case dict():
            for key, child in node.items():
                if key == "description" and isinstance(child, str):
                    yield pointer, child
                else:
                    yield from texts_of(child, f"{pointer}/{key}")
        case list():
            for index, child in enumerate(node):
                yield from texts_of(child, f"{pointer}/{index}")


# --- Extensions -----------------------------------------------------------------------------------------------------


@pytest.mark.full
@EVERY
def test_every_extension_that_fits_can_be_built_alone(release: Release) -> None:
    fitting = fitting_fragments(release)
    assert len(fitting) > 10
    for spec in fitting:
        model, _ = model_of(SchemaChoice(protocol=release.protocol, release=release.name, extensions=(spec,)))
        assert model.definitions, spec
