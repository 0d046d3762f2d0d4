"""What all tests of spawned agents need."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.runtime_agents import Diary, complaints
from tests.spawn.spawner import Spawner
from tests.support import Packages
from tests.test_dataclasses import SOURCES


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


@pytest.fixture
def diary(tmp_path: Path) -> Iterator[Diary]:
    diary = Diary(tmp_path)
    yield diary
    diary.close()


@pytest.fixture
def spawn(acp: ModuleType, diary: Diary, capfd: pytest.CaptureFixture[str]) -> Iterator[Spawner]:
    yield Spawner(acp, diary)
    assert complaints(capfd.readouterr().err) == []


def _children() -> set[int]:
    """The processes of this one, zombies among them; none where the system does not tell."""
    found: set[int] = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            _, _, rest = stat.read_text().rpartition(")")
            if int(rest.split()[1]) == os.getpid():
                found.add(int(stat.parent.name))
    return found


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Checks that nothing that the test has started is left, not even as a zombie. Other tests have processes, too."""
    before = _children()
    yield
    assert _children() <= before
