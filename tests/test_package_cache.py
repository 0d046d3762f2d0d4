"""The cache of packages: what most other tests rest on."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.flavours.models import render_models
from acpgen.flavours import Flavour
from tests import package_cache
from tests.command_line import tree
from tests.support import import_folder, model_of

FILES = {"types.py": "x = 1\n", "py.typed": ""}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(package_cache, "HOME", tmp_path)
    monkeypatch.setattr(package_cache, "_state", lambda: "state")
    (tmp_path / "state").mkdir()
    return tmp_path


def refuse() -> dict[str, str]:
    raise AssertionError("built again")


def test_a_package_is_built_once(home: Path) -> None:
    first = package_cache.folder("key", lambda: FILES)
    assert {path: text.decode() for path, text in tree(first).items()} == FILES
    assert package_cache.folder("key", refuse) == first
    with pytest.raises(AssertionError, match="built again"):
        package_cache.folder("another key", refuse)


def test_a_process_that_was_slower_takes_what_is_there(home: Path) -> None:
    def build() -> dict[str, str]:
        package_cache.folder("key", lambda: FILES)
        return {"types.py": "x = 2\n"}

    found = package_cache.folder("key", build)
    assert (found / "types.py").read_text(encoding="utf-8") == FILES["types.py"]
    assert [*home.glob("state/*/package")] == [found]
    assert not [*home.glob("state/.new-*")]


def test_folders_with_the_same_modules_are_compiled_once(home: Path) -> None:
    """The same code has another path in each; another text is other code, also of the same size."""
    code = "def path():\n    return path.__code__.co_filename, 1\n"
    names = ["one", "two", "three"]
    texts = [code, code, code.replace("1", "2")]
    folders = [
        package_cache.folder(name, lambda text=text, name=name: {"__init__.py": f"# {name}\n", "inner/module.py": text})
        for name, text in zip(names, texts, strict=True)
    ]
    for name, folder in zip(names, folders, strict=True):
        (home / f"compiled_{name}").symlink_to(folder)
        import_folder(home / f"compiled_{name}")
    modules = [importlib.import_module(f"compiled_{name}.inner.module") for name in names]
    assert [module.path() for module in modules] == [
        (str(home / f"compiled_{name}" / "inner" / "module.py"), number)
        for name, number in zip(names, (1, 1, 2), strict=True)
    ]
    assert len({(folder / "inner" / "__pycache__").resolve() for folder in folders}) == 2


def test_nothing_is_kept_of_an_acpgen_that_was_edited(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = home / "code.py"
    edited.touch()
    os.utime(edited, (package_cache.STARTED + 5, package_cache.STARTED + 5))
    monkeypatch.setattr(package_cache, "_sources", lambda: [edited])
    with pytest.raises(RuntimeError, match="run them again"):
        package_cache.folder("key", lambda: FILES)
    assert not [*home.glob("state/*/package")]


def test_another_acpgen_is_another_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_cache, "HOME", tmp_path)
    here = package_cache._state.__wrapped__()
    assert package_cache._state.__wrapped__() == here
    monkeypatch.setattr(package_cache, "version", lambda name: "0")
    assert package_cache._state.__wrapped__() != here


def test_old_states_are_deleted_and_those_in_use_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_cache, "HOME", tmp_path)
    for age in range(6):
        (tmp_path / str(age)).mkdir()
        os.utime(tmp_path / str(age), (10_000 - 1000 * age,) * 2)
    package_cache.prune(now=10_100)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1", "2", "3"}


def test_types_are_those_that_are_rendered() -> None:
    model, _ = model_of(SchemaChoice())
    texts = {render_models(model, Flavour.TYPEDDICT) for _ in range(2)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("acpgen.emit.flavours.models.render_library_types", package_cache.render_library_types)
        assert texts == {render_models(model, Flavour.TYPEDDICT)}
