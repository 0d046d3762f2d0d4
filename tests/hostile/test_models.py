"""Hostile texts in schemas are no code in the modules of flavours, and come through as they were."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.flavours.models import render_models
from acpgen.flavours import Flavour
from tests.hostile import subject
from tests.hostile.test_texts import HOSTILE, embedded
from tests.models_support import Adapter, imported
from tests.needs import need
from tests.support import model_of

pytestmark = pytest.mark.full


@pytest.mark.parametrize("flavour", Flavour, ids=lambda flavour: flavour.value)
def test_texts_in_all_positions_at_once(flavour: Flavour, tmp_path: Path) -> None:
    need("pydantic")
    verdicts = [_check(subject.HARMLESS, flavour, tmp_path)]

    @HOSTILE
    @given(embedded())
    def check(at: Mapping[str, str]) -> None:
        verdicts.append(_check(at, flavour, tmp_path))

    check()
    assert verdicts[0]
    assert sum(verdicts) > len(verdicts) / 2


def _check(at: Mapping[str, str], flavour: Flavour, folder: Path) -> bool:
    """Whether the texts give a module, which then reads and writes them."""
    schema, fragment = subject.write(folder, at)
    try:
        model, _ = model_of(SchemaChoice(schema=schema, extensions=(str(fragment),)))
    except InputError:
        return False
    module = imported(render_models(model, flavour))
    assert "ACPGEN_HOSTILE_TEXT_WAS_RUN" not in os.environ
    raw = {"c": at["const"], "e": at["enum"], "d": at["default"], at["property"]: 3}
    thing = Adapter(module, "Thing")
    written = thing.written(thing.read(raw))
    assert {key: written[key] for key in raw} == raw
    first = {at["tag property"]: at["tag"]}
    tagged = Adapter(module, "Tagged")
    assert tagged.written(tagged.read(first)) == first
    return True
