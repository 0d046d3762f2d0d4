"""Whatever is valid is decoded and encoded to itself, and what is encoded is valid.

The values are made from the schema, and the validator is not ours. With `ACPGEN_DEEP=1` all published schemas and many
more values are run.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given

from tests.fidelity.checking import Check
from tests.fidelity.running import EXAMPLES, bounded, values
from tests.fidelity.subjects import EVERY, SUBJECTS, Subject, chosen_types
from tests.published import FILES, published
from tests.support import Packages

pytestmark = pytest.mark.full


@EVERY
def test_valid_values_come_back(subject: Subject, packages: Packages, tally: Counter[str]) -> None:
    acp = subject.package(packages)
    for name in chosen_types(subject):
        check = Check(subject=subject, acp=acp, name=name, tally=tally)
        tally["definitions"] += 1
        bounded(EXAMPLES)(given(values(subject, name))(check.round_trip))()


@pytest.mark.deep
def test_published_schemas_are_there() -> None:
    published(FILES[-1])
    assert {"v1/2026-11-02/schema.unstable-kept-opened", "v2/2026-11-02/schema"} <= SUBJECTS.keys()
