"""A pair of small schemas for every rule of comparisons, with the expected finding."""

from __future__ import annotations

from tests.diff_cases_fields import FIELDS
from tests.diff_cases_methods import METHODS, PROTOCOL
from tests.diff_cases_types import TYPES
from tests.diff_cases_values import ALIASES, ENUMS, UNIONS

CASES = [*FIELDS, *ENUMS, *UNIONS, *ALIASES, *TYPES, *METHODS, *PROTOCOL]
