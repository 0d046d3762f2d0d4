"""What the runtime learns from a schema about JSON-RPC itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.diagnostics import Severity
from acpgen.ir.model import Cancel, Envelope
from tests.published import published
from tests.support import model_of

pytestmark = pytest.mark.every_python


def envelope_of(folder: Path, schema: dict[str, Any]) -> Envelope:
    path = folder / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    return model_of(SchemaChoice(schema=path))[0].envelope


def small_schema(**more: Any) -> dict[str, Any]:
    """A request envelope with its id, and `halt`, a notification of both peers that names an id."""
    return {
        "$defs": {
            "Id": {"type": ["integer", "string"]},
            "Request": {"x-docs-ignore": True, "type": "object", "properties": {"id": {"$ref": "#/$defs/Id"}}},
            "HaltNotification": {
                "type": "object",
                "properties": {"which": {"$ref": "#/$defs/Id"}, "why": {"type": "string"}},
                "required": ["which"],
                "x-side": "protocol",
                "x-method": "halt",
            },
        },
        "anyOf": [{"$ref": "#/$defs/Request"}],
        **more,
    }


@pytest.mark.parametrize(
    ("protocol", "release", "envelope"),
    [
        (1, "0.10.8", Envelope(cancel=None, null_ids=True, null_error_ids=True)),
        (
            1,
            "2026-11-02",
            Envelope(
                cancel=Cancel(method="$/cancel_request", key="requestId"),
                null_ids=True,
                null_error_ids=True,
            ),
        ),
        (
            2,
            "2026-11-02",
            Envelope(
                cancel=Cancel(method="$/cancel_request", key="requestId"),
                null_ids=False,
                null_error_ids=True,
            ),
        ),
    ],
)
def test_bundled_schemas(protocol: int, release: str, envelope: Envelope) -> None:
    assert model_of(SchemaChoice(protocol=protocol, release=release))[0].envelope == envelope


def test_the_rules_read_the_structure_and_no_names(tmp_path: Path) -> None:
    found = envelope_of(tmp_path, small_schema())
    assert found == Envelope(cancel=Cancel(method="halt", key="which"), null_ids=False, null_error_ids=True)


@pytest.mark.parametrize(
    ("key", "value"), [("x-side", "agent"), ("required", ["which", "why"]), ("required", [])], ids=repr
)
def test_other_notifications_cancel_nothing(key: str, value: object, tmp_path: Path) -> None:
    schema = small_schema()
    schema["$defs"]["HaltNotification"][key] = value
    assert envelope_of(tmp_path, schema).cancel is None


def test_a_schema_without_envelopes_leaves_it_to_json_rpc(tmp_path: Path) -> None:
    schema = small_schema()
    del schema["$defs"]["Request"], schema["anyOf"]
    assert envelope_of(tmp_path, schema) == Envelope(cancel=None, null_ids=True, null_error_ids=True)


def batches_in(schema: Path, *, protocol: int) -> list[tuple[Severity, str | None]]:
    """How grave the findings about batches are, and where they are."""
    _, diagnostics = model_of(SchemaChoice(protocol=protocol, schema=schema))
    return [(found.severity, found.pointer) for found in diagnostics if found.code == "batches"]


def test_an_array_among_the_messages_is_a_batch(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    array = {"type": "array", "items": {"type": "object"}}
    path.write_text(json.dumps(small_schema(anyOf=[{"$ref": "#/$defs/Request"}, {"oneOf": [array]}])), encoding="utf-8")
    assert batches_in(path, protocol=1) == [(Severity.WARNING, "/anyOf/1/oneOf/0")]


@pytest.mark.parametrize(("release", "found"), [("0.14.0", 1), ("2.0.0-alpha.3", 1), ("2026-11-02", 0)])
def test_published_schemas_with_batches(release: str, found: int) -> None:
    assert len(batches_in(published(f"v2/{release}/schema.json"), protocol=2)) == found
