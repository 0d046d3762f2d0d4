"""Planning and writing the output folder: what is compared, what is refused, and what is left after a failure."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from acpgen.diagnostics import Diagnostic, InputError, InternalError, Location, Severity
from acpgen.output import LOCK_NAME, MARKER, STAGE_PREFIX, Change, Kind, Plan, apply, plan, read_manifest, unchanged

HEAD: dict[str, object] = {"acpgen": "0.1.0", "options": {"role": "agent"}, "extensions": []}
OLD = {"__init__.py": f"{MARKER}\nold\n", "sub/codec.py": f"{MARKER}\nold\n", "gone.py": f"{MARKER}\n", "py.typed": ""}
NEW = {
    "__init__.py": f"{MARKER}\nnew\n",
    "sub/codec.py": f"{MARKER}\nnew é\n",
    "more/x.py": f"{MARKER}\n",
    "py.typed": "",
}

Snapshot = dict[str, tuple[bytes | None, int]]


def build(files: Mapping[str, str], folder: Path, head: Mapping[str, object] = HEAD) -> Plan:
    """Plan and apply in one go."""
    made = plan(files, folder=folder, head=head)
    apply(made)
    return made


def snapshot(folder: Path) -> Snapshot:
    """Bytes and time stamp of every file below `folder`, and the name of every folder."""
    return {
        path.relative_to(folder).as_posix(): (
            (path.read_bytes(), path.stat().st_mtime_ns) if path.is_file() else (None, 0)
        )
        for path in folder.rglob("*")
    }


def contents(folder: Path) -> dict[str, str]:
    """The text of every file below `folder` but the manifest."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes().decode() for path in folder.rglob("*.*")}
    return {path: text for path, text in found.items() if path != LOCK_NAME}


def refusal(files: Mapping[str, str], folder: Path) -> tuple[Diagnostic, ...]:
    """The diagnostics with which a build fails; checks that the disk stays as it is."""
    before = snapshot(folder) if folder.is_dir() else {}
    with pytest.raises(InputError) as caught:
        build(files, folder)
    assert (snapshot(folder) if folder.is_dir() else {}) == before
    assert all(found.hint and found.severity is Severity.ERROR for found in caught.value.diagnostics)
    return caught.value.diagnostics


def codes(found: tuple[Diagnostic, ...]) -> list[str]:
    return [each.code for each in found]


def write_lock(folder: Path, files: object) -> None:
    """A manifest that says what the test wants it to say."""
    folder.mkdir(exist_ok=True)
    lock = {"//": MARKER.removeprefix("# "), **HEAD, "files": files}
    (folder / LOCK_NAME).write_text(json.dumps(lock, indent=2))


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """An output folder that holds the old package and something of the user's."""
    folder = tmp_path / "acp"
    build(OLD, folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.py").write_text("mine\n")
    return folder


# --- the plan -----------------------------------------------------------------------------------------------------


def test_plan_names_every_change_and_writes_nothing(out: Path) -> None:
    before = snapshot(out)
    made = plan(NEW, folder=out, head=HEAD)
    assert made.changes == (
        Change("__init__.py", Kind.UPDATE),
        Change(LOCK_NAME, Kind.UPDATE),
        Change("gone.py", Kind.DELETE),
        Change("more/x.py", Kind.CREATE),
        Change("py.typed", Kind.KEEP),
        Change("sub/codec.py", Kind.UPDATE),
    )
    assert not made.is_clean
    assert list(made.files) == [*sorted(NEW), LOCK_NAME]
    assert made.written == {path: text for path, text in made.files.items() if path != "py.typed"}
    assert snapshot(out) == before


def test_plan_of_a_missing_folder_makes_no_folder(tmp_path: Path) -> None:
    made = plan(NEW, folder=tmp_path / "a" / "acp", head=HEAD)
    assert {change.kind for change in made.changes} == {Kind.CREATE}
    assert list(tmp_path.iterdir()) == []


def test_apply_makes_the_folder_what_the_plan_says(out: Path) -> None:
    build(NEW, out)
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}
    assert (out / "sub/codec.py").read_bytes() == NEW["sub/codec.py"].encode()
    assert plan(NEW, folder=out, head=HEAD).is_clean


def test_a_clean_plan_touches_nothing(out: Path) -> None:
    before = snapshot(out)
    assert build(OLD, out).is_clean
    assert snapshot(out) == before


def test_files_with_equal_bytes_keep_their_time_stamp(out: Path) -> None:
    for path in OLD:
        os.utime(out / path, (1, 1))
    build(NEW, out)
    assert (out / "py.typed").stat().st_mtime == 1
    assert (out / "__init__.py").stat().st_mtime > 1


def test_a_changed_head_updates_the_manifest_alone(out: Path) -> None:
    made = plan(OLD, folder=out, head={**HEAD, "acpgen": "0.2.0"})
    assert [change.path for change in made.changes if change.kind is not Kind.KEEP] == [LOCK_NAME]


def test_folders_left_empty_by_deletion_go_and_others_stay(out: Path) -> None:
    build({"__init__.py": f"{MARKER}\n"}, out)
    assert not (out / "sub").exists()
    assert (out / "mine" / "notes.py").read_text() == "mine\n"


def test_new_files_have_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        build(OLD, tmp_path / "acp")  # one step into place
        build(NEW, tmp_path / "acp")  # file by file
    finally:
        os.umask(old)
    modes = {path: stat.S_IMODE((tmp_path / "acp" / path).stat().st_mode) for path in [".", "more", *NEW, LOCK_NAME]}
    assert modes == {path: 0o750 if path in (".", "more") else 0o640 for path in modes}


def test_a_folder_named_through_a_link_is_written(out: Path) -> None:
    link = out.parent / "link"
    link.symlink_to(out)
    build(NEW, link)
    assert contents(out)["__init__.py"] == NEW["__init__.py"]
    assert link.is_symlink()


# --- the manifest -------------------------------------------------------------------------------------------------


def test_manifest_text(tmp_path: Path) -> None:
    build({"b.py": f"{MARKER}\n", "a.py": f"{MARKER} a"}, tmp_path / "acp", {"z": 1, "a": {"d": None, "c": "x"}})
    text = (tmp_path / "acp" / LOCK_NAME).read_text()
    note = json.loads(text)["//"]
    assert note.startswith("Generated by acpgen. Do not edit.")
    files = {"a.py": sha(f"{MARKER} a"), "b.py": sha(f"{MARKER}\n")}
    expected = {"//": note, "a": {"c": "x", "d": None}, "z": 1, "files": files}
    assert text == json.dumps(expected, indent=2) + "\n"
    assert str(tmp_path) not in text


def test_manifest_does_not_depend_on_the_order_of_the_input(tmp_path: Path) -> None:
    build(NEW, tmp_path / "a", HEAD)
    build(dict(reversed(NEW.items())), tmp_path / "b", dict(reversed(HEAD.items())))
    assert (tmp_path / "a" / LOCK_NAME).read_bytes() == (tmp_path / "b" / LOCK_NAME).read_bytes()


def test_manifest_is_read_back(out: Path) -> None:
    manifest = read_manifest(out)
    assert manifest is not None
    assert manifest.head == HEAD
    assert manifest.files == {path: sha(text) for path, text in OLD.items()}
    assert read_manifest(out / "missing") is None
    assert read_manifest(out / "py.typed") is None


@pytest.mark.parametrize(
    "path",
    [
        *("/etc/passwd", "//host/x", "../victim.py", "a/../../victim.py", "a\\b", "C:/x", "C:x"),
        *("a//b", "a/", "", ".", "./a", ".. /a", "a\0b", "a\nb", "\ud800"),
        *(".git/config", f"{STAGE_PREFIX}1/x", LOCK_NAME, "ACPGEN.LOCK"),
    ],
)
def test_manifest_with_an_unsafe_path_is_broken_and_deletes_nothing(tmp_path: Path, path: str) -> None:
    (tmp_path / "victim.py").write_text("mine\n")
    write_lock(tmp_path / "acp", {"ok.py": sha(""), path: sha("mine\n")})
    (found,) = refusal(NEW, tmp_path / "acp")
    assert found.code == "manifest-broken"
    assert found.location is not None
    assert found.location.line == 10
    assert (tmp_path / "victim.py").read_text() == "mine\n"


@pytest.mark.parametrize("files", [None, [], {"a.py": 1}, {"a.py": "abc"}, {"a.py": "Z" * 64}])
def test_manifest_with_other_shapes_is_broken(tmp_path: Path, files: object) -> None:
    write_lock(tmp_path, files)
    with pytest.raises(InputError) as caught:
        read_manifest(tmp_path)
    assert codes(caught.value.diagnostics) == ["manifest-broken"]
    assert not unchanged(tmp_path, HEAD)


def test_manifest_with_a_merge_conflict_is_broken_at_its_line(out: Path) -> None:
    lock = out / LOCK_NAME
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([*lines[:2], "<<<<<<< ours", *lines[2:]]))
    (found,) = refusal(NEW, out)
    assert (found.code, found.location) == ("manifest-broken", Location(lock.as_posix(), 3, 1))


@pytest.mark.parametrize("damage", [b"\xff", b"[" * 200_000, b"1" * 10_000])
def test_manifest_that_is_no_json_is_broken(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / LOCK_NAME).write_bytes(b'{"//": "' + MARKER.removeprefix("# ").encode() + b'", "x": ' + damage)
    assert codes(refusal(NEW, tmp_path)) == ["manifest-broken"]


@pytest.mark.parametrize("text", ["", "{}", "not ours", json.dumps({"//": "other", "x": MARKER})])
def test_a_lock_file_of_someone_else_is_foreign(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    (found,) = refusal(NEW, tmp_path)
    assert found.code == "foreign-file"
    assert LOCK_NAME in found.message


@pytest.mark.parametrize("head", [{"files": 1}, {"//": 1}, {"x": object()}, {"x": float("nan")}])
def test_a_head_that_is_no_head_is_a_bug(tmp_path: Path, head: dict[str, object]) -> None:
    with pytest.raises(InternalError):
        plan(NEW, folder=tmp_path, head=head)


# --- unchanged ----------------------------------------------------------------------------------------------------


def test_unchanged_package(out: Path) -> None:
    assert unchanged(out, HEAD)
    assert unchanged(out, {**HEAD, "extensions": ()})


def edit_file(out: Path) -> None:
    (out / "sub/codec.py").write_text("edited")


def link_file(out: Path) -> None:
    os.rename(out / "py.typed", out / "real")
    (out / "py.typed").symlink_to("real")


def swap_out(path: Path) -> Path:
    path.unlink()
    return path


def spoil_head(out: Path) -> None:
    text = (out / LOCK_NAME).read_text()
    (out / LOCK_NAME).write_text(text.replace('"0.1.0"', "NaN"))


@pytest.mark.parametrize(
    "change",
    [
        edit_file,
        link_file,
        spoil_head,
        lambda out: (out / "sub/codec.py").unlink(),
        lambda out: (out / LOCK_NAME).unlink(),
        lambda out: (out / LOCK_NAME).write_text("broken"),
        lambda out: os.rename(out / "mine", swap_out(out / "gone.py")),
    ],
)
def test_package_is_not_unchanged_after(out: Path, change: Callable[[Path], object]) -> None:
    change(out)
    assert not unchanged(out, HEAD)


@pytest.mark.parametrize("head", [{}, {**HEAD, "more": None}, {**HEAD, "options": {"role": "client"}}])
def test_package_is_not_unchanged_for_another_head(out: Path, head: dict[str, object]) -> None:
    assert not unchanged(out, head)
    build(OLD, out, {"flag": True})
    assert not unchanged(out, {"flag": 1})


# --- whose file it is ---------------------------------------------------------------------------------------------


def test_foreign_files_are_all_reported_and_nothing_is_written(out: Path) -> None:
    (out / "__init__.py").write_text("mine\n")
    (out / "more").write_text("a file where a folder has to be")
    (out / "y.py").mkdir()
    found = refusal({**NEW, "more/y.py": f"{MARKER}\n", "y.py": f"{MARKER}\n"}, out)
    assert codes(found) == ["foreign-file"] * 3
    for name, each in zip(["__init__.py", "more", "y.py"], found, strict=True):
        assert f"{out.as_posix()}/{name} " in each.message


def test_an_edited_file_with_the_marker_is_overwritten(out: Path) -> None:
    (out / "__init__.py").write_text(f"{MARKER} and more\nedited\n")
    build(NEW, out)
    assert (out / "__init__.py").read_text() == NEW["__init__.py"]


def test_a_file_with_the_marker_is_overwritten_without_a_manifest(out: Path) -> None:
    (out / LOCK_NAME).unlink()
    build(NEW, out)
    assert contents(out) == {**NEW, "gone.py": f"{MARKER}\n", "mine/notes.py": "mine\n"}


def test_a_listed_file_without_the_marker_is_overwritten_unless_edited(tmp_path: Path) -> None:
    write_lock(tmp_path, {"__init__.py": sha("listed")})
    (tmp_path / "__init__.py").write_text("edited")
    assert codes(refusal(NEW, tmp_path)) == ["foreign-file"]
    (tmp_path / "__init__.py").write_text("listed")
    build(NEW, tmp_path)
    assert (tmp_path / "__init__.py").read_text() == NEW["__init__.py"]


def test_a_file_with_the_right_bytes_is_adopted(tmp_path: Path) -> None:
    (tmp_path / "py.typed").touch()
    assert Change("py.typed", Kind.KEEP) in build(NEW, tmp_path).changes


def test_a_file_that_only_mentions_the_marker_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text(f"x = 1\n{MARKER}\n")
    assert codes(refusal(NEW, tmp_path)) == ["foreign-file"]


def test_stale_files_that_are_ours_are_deleted(tmp_path: Path) -> None:
    write_lock(tmp_path, {"marked.py": sha("as generated"), "hashed": sha("same"), "missing": sha("")})
    (tmp_path / "marked.py").write_text(f"{MARKER}\nedited")
    (tmp_path / "hashed").write_text("same")
    (tmp_path / "unlisted.py").write_text(f"{MARKER}\n")
    made = build(NEW, tmp_path)
    assert [change.path for change in made.changes if change.kind is Kind.DELETE] == ["hashed", "marked.py"]
    assert contents(tmp_path) == {**NEW, "unlisted.py": f"{MARKER}\n"}
    assert not (tmp_path / "hashed").exists()


def test_stale_files_that_are_not_ours_any_more_are_kept_and_reported(out: Path) -> None:
    (out / "gone.py").write_text("mine now\n")
    os.rename(out / "sub", out.parent / "elsewhere")
    (out / "sub").symlink_to(out.parent / "elsewhere")
    made = build({"__init__.py": f"{MARKER}\n"}, out)
    assert [(note.code, note.severity) for note in made.notes] == [("stale-file-kept", Severity.WARNING)] * 2
    assert ["gone.py" in made.notes[0].message, "sub/codec.py" in made.notes[1].message] == [True, True]
    assert (out / "gone.py").read_text() == "mine now\n"
    assert (out.parent / "elsewhere" / "codec.py").exists()


def test_a_stale_name_of_the_new_file_is_not_deleted(tmp_path: Path) -> None:
    """A hard link stands in for a disk that ignores case: two names, one file."""
    write_lock(tmp_path, {"TYPES.py": sha("x")})
    (tmp_path / "types.py").write_text(f"{MARKER}\n")
    os.link(tmp_path / "types.py", tmp_path / "TYPES.py")
    made = plan({"types.py": f"{MARKER}\n"}, folder=tmp_path, head=HEAD)
    assert Kind.DELETE not in {change.kind for change in made.changes}


# --- what is refused ----------------------------------------------------------------------------------------------


def test_the_folder_is_a_file(out: Path) -> None:
    assert codes(refusal(NEW, out / "py.typed")) == ["folder-is-file"]
    assert codes(refusal(NEW, out / "py.typed" / "acp")) == ["folder-unwritable"]


def test_the_root_the_home_folder_and_a_checkout_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    for folder in (Path("/"), tmp_path / "home", tmp_path / "link", tmp_path / "checkout", tmp_path / "a\0b"):
        with pytest.raises(InputError) as caught:
            plan(NEW, folder=folder, head=HEAD)
        assert codes(caught.value.diagnostics) == ["folder-refused"]
    build(NEW, tmp_path / "checkout" / "acp")


@pytest.mark.parametrize(("link", "target"), [("sub", ".."), ("__init__.py", "mine/notes.py"), (LOCK_NAME, "../lock")])
def test_links_are_not_written_through(out: Path, link: str, target: str) -> None:
    os.rename(out / link, out.parent / "lock")
    (out / link).symlink_to(target)
    (found,) = refusal({**NEW, "sub/two.py": f"{MARKER}\n"}, out)
    assert found.code == "symlink-in-output"
    assert (out / link).as_posix() in found.message


@pytest.mark.parametrize(
    "paths", [("Types.py", "types.py"), ("A/x.py", "a/y.py"), ("sub", "SUB/x.py"), ("ß.py", "SS.py")]
)
def test_paths_that_clash_by_case(tmp_path: Path, paths: tuple[str, str]) -> None:
    (found,) = refusal(dict.fromkeys(paths, f"{MARKER}\n"), tmp_path / "acp")
    assert found.code == "case-clash"


@pytest.mark.parametrize("path", ["../x.py", "/x.py", "a/../x.py", "a\\x.py", "", LOCK_NAME])
def test_an_unsafe_generated_path_is_a_bug(tmp_path: Path, path: str) -> None:
    with pytest.raises(InternalError):
        plan({path: f"{MARKER}\n"}, folder=tmp_path / "acp", head=HEAD)


@pytest.mark.parametrize("text", ["x = 1\n", f"{MARKER}\r\n", f"{MARKER}\n\ud800"])
def test_unsafe_generated_text_is_a_bug(tmp_path: Path, text: str) -> None:
    with pytest.raises(InternalError):
        plan({"x.py": text}, folder=tmp_path / "acp", head=HEAD)


def test_a_path_that_is_file_and_folder_is_a_bug(tmp_path: Path) -> None:
    with pytest.raises(InternalError):
        plan({"x": f"{MARKER}\n", "x/y.py": f"{MARKER}\n"}, folder=tmp_path, head=HEAD)


@pytest.mark.parametrize("locked", ["acp", "acp/sub"])
def test_a_folder_that_is_not_writable(out: Path, monkeypatch: pytest.MonkeyPatch, locked: str) -> None:
    """Simulated: permission bits do not stop root."""
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != out.parent / locked and real(path, mode))
    assert codes(refusal(NEW, out)) == ["folder-unwritable"]
    assert build(OLD, out).is_clean  # nothing to write, nothing to refuse
    (out / "sub/codec.py").write_text(f"{MARKER}\nedited\n")
    assert codes(refusal(OLD, out)) == ["folder-unwritable"]  # for the staging folder, where no file there changes


def test_a_missing_folder_below_one_that_is_not_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    assert codes(refusal(NEW, tmp_path / "a" / "acp")) == ["folder-unwritable"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_read(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.lstat

    def guarded(path: str | Path) -> os.stat_result:
        if Path(path).name == "codec.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "lstat", guarded)
    with pytest.raises(InputError, match="Permission denied") as caught:
        plan(NEW, folder=out, head=HEAD)
    assert codes(caught.value.diagnostics) == ["folder-unreadable"]


def test_a_folder_that_changes_between_plan_and_apply(out: Path) -> None:
    made = plan(NEW, folder=out, head=HEAD)
    (out / "more").mkdir()
    (out / "more" / "x.py").write_text(f"{MARKER}\nanother run\n")
    with pytest.raises(InputError) as caught:
        apply(made)
    assert codes(caught.value.diagnostics) == ["output-changed"]
    (out / "more" / "x.py").write_text("mine\n")
    with pytest.raises(InputError) as caught:
        apply(made)
    assert codes(caught.value.diagnostics) == ["foreign-file"]
    assert (out / "more" / "x.py").read_text() == "mine\n"


# --- failures midway ----------------------------------------------------------------------------------------------


def fail_at(
    wanted: int, real: Callable[..., object], error: BaseException, *, forever: bool = False
) -> Callable[..., object]:
    """`real`, but its `wanted`-th call raises `error`; with `forever`, all later ones do too."""
    calls = 0

    def call(*args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == wanted or (forever and calls > wanted):
            raise error
        return real(*args, **kwargs)

    return call


FULL = OSError(errno.ENOSPC, "No space left on device")


CHANGES_IN_UPDATE = 5
"""Two updates, a creation, a deletion, and the manifest."""


@pytest.mark.parametrize("call", range(1, CHANGES_IN_UPDATE + 1))
@pytest.mark.parametrize("hard_links", [True, False])
def test_a_failed_update_leaves_the_old_package(
    out: Path, monkeypatch: pytest.MonkeyPatch, call: int, hard_links: bool
) -> None:
    before = snapshot(out)
    if not hard_links:
        monkeypatch.setattr(os, "link", fail_at(1, os.link, OSError(errno.EPERM, "no links here"), forever=True))
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at(call, os.replace, FULL))
        with pytest.raises(InputError, match="No space left on device") as caught:
            build(NEW, out)
    assert codes(caught.value.diagnostics) == ["write-failed"]
    assert snapshot(out) == before
    build(NEW, out)
    assert contents(out) == {**NEW, "mine/notes.py": "mine\n"}


def test_an_update_renames_as_often_as_the_test_above_thinks(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[str] = []
    real = os.replace

    def record(source: Path, target: Path) -> None:
        renamed.append(Path(source if STAGE_PREFIX in str(target) else target).name)
        real(source, target)

    monkeypatch.setattr(os, "replace", record)
    build(NEW, out)
    assert len(renamed) == CHANGES_IN_UPDATE
    assert renamed[-1] == LOCK_NAME


@pytest.mark.parametrize("function", ["fsync", "mkdir", "link"])
@pytest.mark.parametrize("call", [1, 2])
def test_a_failure_before_the_renaming(out: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int) -> None:
    before = snapshot(out)
    monkeypatch.setattr("shutil.copy2", fail_at(1, lambda *_: None, FULL, forever=True))
    monkeypatch.setattr(os, function, fail_at(call, getattr(os, function), FULL))
    with pytest.raises(InputError, match="No space left on device"):
        build(NEW, out)
    assert snapshot(out) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_any_exception_puts_the_old_package_back(
    out: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    before = snapshot(out)
    monkeypatch.setattr(os, "replace", fail_at(4, os.replace, error))
    with pytest.raises(type(error)):
        build(NEW, out)
    assert snapshot(out) == before


def test_a_failure_does_not_remove_what_another_process_has_made(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.replace

    def race(source: Path, target: Path) -> None:
        if target.name == "x.py":
            target.write_text("mine\n")
            raise FULL
        real(source, target)

    monkeypatch.setattr(os, "replace", race)
    with pytest.raises(InputError):
        build(NEW, out)
    assert contents(out) == {**OLD, "more/x.py": "mine\n", "mine/notes.py": "mine\n"}


def test_what_cannot_be_put_back_is_named_and_kept(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "replace", fail_at(2, os.replace, FULL, forever=True))
    with pytest.raises(InputError) as caught:
        build(NEW, out)
    (stage,) = out.glob(f"{STAGE_PREFIX}*")
    hint = caught.value.diagnostics[0].hint or ""
    assert "__init__.py" in hint
    assert stage.as_posix() in hint
    assert OLD["__init__.py"] in {path.read_text() for path in stage.glob("*.old")}


@pytest.mark.parametrize(("function", "call"), [("replace", 1), ("fsync", 1), ("fsync", 5), ("mkdir", 2), ("mkdir", 4)])
def test_a_failed_creation_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, call: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail_at(call, getattr(os, function), FULL))
        with pytest.raises(InputError, match="No space left on device"):
            build(NEW, tmp_path / "a" / "b" / "acp")
    assert list(tmp_path.iterdir()) == []
    build(NEW, tmp_path / "a" / "b" / "acp")
    assert contents(tmp_path / "a" / "b" / "acp") == NEW


def test_a_new_folder_appears_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed: list[tuple[Path, Path]] = []
    real = os.replace

    def record(source: Path, target: Path) -> None:
        assert not (tmp_path / "acp").exists()
        renamed.append((source, target))
        real(source, target)

    monkeypatch.setattr(os, "replace", record)
    build(NEW, tmp_path / "acp")
    ((source, target),) = renamed
    assert source.parent == tmp_path
    assert source.name.startswith(STAGE_PREFIX)
    assert source.name.endswith(".acp")
    assert target == tmp_path / "acp"
    assert list(tmp_path.iterdir()) == [target]


def test_leftovers_of_killed_runs_are_swept_after_an_hour(out: Path) -> None:
    two_hours_ago = time.time() - 7200
    beside, inside = out.parent, out
    swept = [inside / f"{STAGE_PREFIX}1", beside / f"{STAGE_PREFIX}2.acp"]
    kept = [inside / ".acpgen", beside / f"{STAGE_PREFIX}3.other", beside / f"{STAGE_PREFIX}4.x.acp"]
    young = [inside / f"{STAGE_PREFIX}5", beside / f"{STAGE_PREFIX}6.acp"]
    for folder in [*swept, *kept, *young]:
        folder.mkdir()
        (folder / "0.old").write_text("left over")
    for folder in [*swept, *kept]:
        os.utime(folder, (two_hours_ago, two_hours_ago))
    (inside / f"{STAGE_PREFIX}link").symlink_to(kept[1])
    os.utime(inside / f"{STAGE_PREFIX}link", (two_hours_ago, two_hours_ago), follow_symlinks=False)
    build(OLD, out)
    assert [folder.exists() for folder in swept] == [False] * 2
    assert all((folder / "0.old").exists() for folder in [*kept, *young])
