"""Programs that were written for 0.2 run unchanged on packages that are built as the changelog says.

`former_programs.md` has them, as the pages of 0.2 had them.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import Ran, blocks, environment_with_acpgen, play
from tests.support import REPOSITORY

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("posix"),
]

PROGRAMS = Path(__file__).with_name("former_programs.md")
CHANGELOG = REPOSITORY / "CHANGELOG.md"
EXTENSIONS = 'extensions = ["token-usage", "session-fork", "session-model", "auth-env-var"]'
OUTPUTS = (
    ("demo", "agent", ""),
    ("chat_acp", "client", ""),
    ("editor_acp", "client", EXTENSIONS),
    ("proxy_acp", "proxy", ""),
)
"""The packages of the pages: the folder, the role, and what else the configuration of 0.2 has said."""


def all_parts() -> dict[str, str]:
    """The lines of the changelog that give a package what all packages of 0.2 had, by role."""
    found = re.search(r"All that 0\.2 had is.*?^```toml\n(.*?)^```", CHANGELOG.read_text("utf-8"), re.DOTALL | re.M)
    assert found
    return dict(zip(("agent", "client", "proxy"), found[1].splitlines(), strict=True))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> list[Ran]:
    home = tmp_path_factory.mktemp("former")
    folder = home / "folder"
    folder.mkdir()
    parts = all_parts()
    tables = [
        f'[tool.acpgen.outputs.{name}]\nout = "{name}"\nrole = "{role}"\n{parts[role]}\n{more}\n'
        for name, role, more in OUTPUTS
    ]
    (folder / "pyproject.toml").write_text("\n".join(tables), encoding="utf-8")
    text = "```sh\nacpgen build\n```\n\n" + PROGRAMS.read_text(encoding="utf-8")
    return play(blocks(text), folder, environment_with_acpgen(home / "bin"))


def test_programs_for_the_former_release_run_unchanged(played: list[Ran]) -> None:
    assert len(played) == 10
    assert [ran.text for ran in played] == [ran.block.text for ran in played]
