"""Roles are data: what is generated for a role follows from its record."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.format import format_files
from acpgen.emit.role_classes import RoleView
from acpgen.emit.runtime import make_environment
from acpgen.roles import Role, RoleRecord, Side
from tests.support import REPOSITORY, import_folder, model_of, package_files, write_package

MIDDLE = RoleRecord(name="middle", sides=tuple(Side), spawns=False, is_open=True, starts="stdio")
"""A role that is at both sides."""

NAMED = re.compile(r"\bRole\.[A-Z]+|\bis_(?:agent|client)\b")


@pytest.mark.parametrize("protocol", [1, 2])
def test_a_role_of_both_sides_handles_and_calls_the_methods_of_both(protocol: int, tmp_path: Path) -> None:
    sources = SchemaChoice(protocol=protocol)
    model, _ = model_of(sources)
    template = make_environment(".").get_template("role.py.jinja")
    files = format_files({"middle.py": template.render(role=RoleView(MIDDLE, model))})
    write_package({**package_files(sources), **files}, tmp_path / f"middle_{protocol}")
    import_folder(tmp_path / f"middle_{protocol}")
    made = importlib.import_module(f"middle_{protocol}.middle")
    assert made.Middle.REQUESTS.keys() | made.Middle.NOTIFICATIONS.keys() == {method.wire for method in model.methods}
    for method in model.methods:
        assert hasattr(made.Middle, method.name)
        for side in method.handlers:
            assert hasattr(getattr(made, side.stub), method.name)
    middle = made.Middle(client="to the client", agent="to the agent")
    assert (middle.client, middle.agent) == ("to the client", "to the agent")


def test_the_records_have_the_names_of_the_roles() -> None:
    assert [role.record.name for role in Role] == [role.value for role in Role]


def test_no_other_module_tells_roles_apart() -> None:
    found = {
        path.relative_to(REPOSITORY).as_posix(): NAMED.findall(path.read_text(encoding="utf-8"))
        for path in REPOSITORY.glob("acpgen/**/*.py")
        if path != REPOSITORY / "acpgen/roles.py"
    }
    assert {path: names for path, names in found.items() if names} == {
        "acpgen/cli/init.py": ["Role.AGENT"]
    }  # a default
