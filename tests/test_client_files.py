"""Files that agents read and write through a client: what they get, and that they get nothing outside the roots."""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import shutil
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.client_support import HandAgent, hand_agent, helpers_of
from tests.runtime_support import V1, acp_log, run, texts
from tests.support import Packages, import_folder

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

SECRET = "what nobody may read"
NOT_FOUND, REFUSED = -32002, -32602


@pytest.fixture(name="acp")
def package(packages: Packages) -> Any:
    """A package of protocol 1."""
    return packages(V1)


@pytest.fixture(name="root")
def folder(tmp_path: Path) -> Path:
    """A folder that is opened for the agent, beside one that is not."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text(SECRET)
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def editor(acp: Any, root: Path, **options: Any) -> type[Any]:
    """A client that opens a folder."""
    helpers = helpers_of(acp)

    class Editor(helpers.FileClient):  # type: ignore[name-defined, misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.files = helpers.Files(root, **options)

    return Editor


def talk(acp: Any, kind: type[Any], *messages: tuple[str, dict[str, Any]]) -> list[Any]:
    """The answers to messages: the content of a file, None for one that was written, or the code of the error."""

    async def main() -> list[Any]:
        async with hand_agent(acp, kind) as agent:
            answers = [await agent.call(f"fs/{method}_text_file", **params) for method, params in messages]
        return [answer.get("content") if isinstance(answer, dict) else answer for answer in answers]

    return run(main())


def read(path: object, **params: Any) -> tuple[str, dict[str, Any]]:
    return "read", {"path": str(path), **params}


def write(path: object, content: str) -> tuple[str, dict[str, Any]]:
    return "write", {"path": str(path), "content": content}


# --- Lines -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, "a\r\nb\x0c\u2028\n\nlast"),
        ({"line": 0}, "a\r\nb\x0c\u2028\n\nlast"),
        ({"line": 1, "limit": 1}, "a\r\n"),
        ({"line": 2, "limit": 1}, "b\x0c\u2028\n"),
        ({"line": 3}, "\nlast"),
        ({"line": 4}, "last"),
        ({"line": 4, "limit": 9}, "last"),
        ({"line": 5}, ""),
        ({"line": 2**32 - 1, "limit": 2**32 - 1}, ""),
        ({"limit": 0}, ""),
        ({"line": None, "limit": None}, "a\r\nb\x0c\u2028\n\nlast"),
    ],
)
def test_lines_are_counted_from_1_and_kept_as_they_are(acp: Any, root: Path, params: Any, expected: str) -> None:
    (root / "a.txt").write_bytes("a\r\nb\x0c\u2028\n\nlast".encode())
    assert talk(acp, editor(acp, root), read(root / "a.txt", **params)) == [expected]


def test_what_was_read_is_written_back_as_it_was(acp: Any, root: Path) -> None:
    data = b"\xef\xbb\xbfone\r\ntwo\rthree\nno end"
    (root / "a.txt").write_bytes(data)
    (content,) = talk(acp, editor(acp, root), read(root / "a.txt"))
    assert content == "one\r\ntwo\rthree\nno end"
    talk(acp, editor(acp, root), write(root / "a.txt", content))
    assert (root / "a.txt").read_bytes() == data


def test_a_file_keeps_its_mode_and_a_new_one_gets_its_folders(acp: Any, root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o750)
    assert talk(acp, editor(acp, root), write(script, "new"), write(root / "a/b/c", "text")) == [None, None]
    assert (script.read_text(), stat.S_IMODE(script.stat().st_mode)) == ("new", 0o750)
    assert (root / "a/b/c").read_text() == "text"
    assert sorted(each.name for each in root.rglob("*")) == ["a", "b", "c", "run.sh"]


def test_a_link_within_a_root_stays_a_link(acp: Any, root: Path) -> None:
    (root / "real").write_text("old")
    (root / "link").symlink_to("real")
    assert talk(acp, editor(acp, root), write(root / "link", "new"), read(root / "link")) == [None, "new"]
    assert (root / "link").is_symlink()
    assert (root / "real").read_text() == "new"


@pytest.mark.needs("no root")
def test_a_file_that_may_not_be_written_is_not_replaced(acp: Any, root: Path) -> None:
    (root / "a").write_text("old")
    (root / "a").chmod(0o444)
    assert talk(acp, editor(acp, root), write(root / "a", "new")) == [REFUSED]
    assert (root / "a").read_text() == "old"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    acp: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert talk(acp, editor(acp, root), write(root / "a", "new")) == [-32603]
    assert [(each.name, each.read_text()) for each in root.iterdir()] == [("a", "old")]


def test_without_roots_there_are_no_files(acp: Any, root: Path) -> None:
    assert talk(acp, helpers_of(acp).FileClient, read(root), write(root / "a", "")) == [REFUSED, REFUSED]


def test_reading_alone(acp: Any, root: Path) -> None:
    (root / "a").write_text("text")
    messages = read(root / "a"), write(root / "a", "other")
    assert talk(acp, editor(acp, root, write=False), *messages) == ["text", REFUSED]


def test_sizes_are_bounded(acp: Any, root: Path) -> None:
    (root / "log").write_bytes(b"0123456\n" * 20)
    with (root / "endless").open("wb") as file:
        file.truncate(1 << 40)
    messages = [
        read(root / "log"),
        read(root / "log", limit=12),
        read(root / "log", line=12, limit=1),
        read(root / "log", line=12, limit=2),
        read(root / "log", line=13, limit=1),
        read(root / "endless"),
        read(root / "endless", limit=1),
        write(root / "new", "é" * 51),
        write(root / "new", "é" * 50),
    ]
    lines = ["0123456\n" * 12, "0123456\n"]
    assert talk(acp, editor(acp, root, max_bytes=100), *messages) == [REFUSED, *lines, *5 * [REFUSED], None]


@pytest.mark.parametrize("then", ["write", "read"])
def test_a_cancelled_write_comes_before_what_follows_it(acp: Any, root: Path, then: str) -> None:
    """Its thread goes on when the request is cancelled: the file is not free before it has ended."""
    begun, goes_on, overtakes = (threading.Event() for _ in range(3))
    order = list[str]()
    helpers = helpers_of(acp)

    class Slow(helpers.Files):  # type: ignore[name-defined, misc]
        def write_text(self, path: str, text: str) -> None:
            if text == "first":
                begun.set()
                assert goes_on.wait(60)
            super().write_text(path, text)
            order.append(text)
            overtakes.set()

        def read_text(self, path: str, **options: Any) -> str:
            order.append("read")
            overtakes.set()
            return str(super().read_text(path, **options))

    async def main() -> list[Any]:
        async with hand_agent(acp, editor(acp, root)) as agent:
            agent.client.files = Slow(root)
            path = str(root / "a")
            first = await agent.ask("fs/write_text_file", path=path, content="first")
            await asyncio.to_thread(begun.wait, 60)
            second = await agent.ask(
                f"fs/{then}_text_file", path=path, **({"content": "second"} if then == "write" else {})
            )
            await agent.peer.notify("$/cancel_request", {"requestId": first})
            cancelled = await agent.answer(first)
            await asyncio.to_thread(overtakes.wait, 0.3)
            before = list(order)
            goes_on.set()
            return [cancelled, before, await agent.answer(second)]

    cancelled, before, answer = run(main())
    assert (cancelled, before) == (-32800, [])
    assert order == ["first", "second" if then == "write" else "read"]
    assert (root / "a").read_text() == ("second" if then == "write" else "first")
    assert answer == ({} if then == "write" else {"content": "first"})


def test_a_write_that_is_cancelled_while_it_waits_is_not_done(acp: Any, root: Path) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(helpers_of(acp).Files):  # type: ignore[name-defined, misc]
        def write_text(self, path: str, text: str) -> None:
            begun.set()
            assert goes_on.wait(60)
            super().write_text(path, text)

    async def main() -> list[Any]:
        async with hand_agent(acp, editor(acp, root)) as agent:
            agent.client.files = Slow(root)
            numbers = [
                await agent.ask("fs/write_text_file", path=str(root / name), content=name) for name in ("a", "b", "c")
            ]
            await asyncio.to_thread(begun.wait, 60)
            await agent.peer.notify("$/cancel_request", {"requestId": numbers[1]})
            cancelled = await agent.answer(numbers[1])
            goes_on.set()
            return [cancelled, await agent.answer(numbers[0]), await agent.answer(numbers[2])]

    assert run(main()) == [-32800, {}, {}]
    assert sorted(each.name for each in root.iterdir()) == ["a", "c"]


def test_an_editor_with_unsaved_text(acp: Any, root: Path) -> None:
    seen: list[Any] = []

    class Buffers(editor(acp, root)):  # type: ignore[misc]
        async def unsaved_text(self, path: str) -> str | None:
            return "one\ntwo\n" if path.endswith("open") else None

        async def save_text(self, path: str, text: str) -> bool:
            seen.append((path, text))
            return path.endswith("open")

    (root / "closed").write_text("on disk")
    (root / "link").symlink_to("open")
    messages = [
        read(root / "link", line=2),
        read(root / "closed"),
        read(root.parent / "outside" / "open"),
        write(root / "open", "x"),
        write(root / "closed", "y"),
        write(root.parent / "open", "z"),
    ]
    with acp_log(logging.WARNING) as records:
        answers = talk(acp, Buffers, *messages)
    assert answers == ["two\n", "on disk", REFUSED, None, None, REFUSED]
    assert seen == [(str(root / "open"), "x"), (str(root / "closed"), "y")]
    assert not (root / "open").exists()
    assert texts(records) == ""


def test_a_new_file_for_an_agent_that_takes_no_error_for_one(acp: Any, root: Path) -> None:
    """As docs/requests.md has it: the text of a file that is not there is empty."""

    class NewFiles(editor(acp, root)):  # type: ignore[misc]
        async def unsaved_text(self, path: str) -> str | None:
            return None if os.path.lexists(path) else ""

    there, new, outside = root / "there", root / "deep" / "new", root.parent / "outside" / "new"
    there.write_text("text")
    calls = (read(there), read(new), write(new, "made"), read(new), read(outside))
    assert talk(acp, NewFiles, *calls) == ["text", "", None, "made", REFUSED]


def test_both_methods_are_advertised(acp: Any, root: Path) -> None:
    message = acp.advertise(editor(acp, root), acp.InitializeRequest(protocol_version=1))
    capabilities = message.client_capabilities
    assert (capabilities.fs.read_text_file, capabilities.fs.write_text_file) == (True, True)
    assert not capabilities.terminal


# --- Hostile paths ---------------------------------------------------------------------------------------------------


def traps(root: Path) -> list[Path]:
    """Put links, pipes and odd files into a folder, and return them."""
    outside = root.parent / "outside"
    targets: dict[str, Path | str] = {
        "to_file": outside / "secret",
        "to_folder": outside,
        "to_parent": "..",
        "to_root": "/",
        "to_nothing": outside / "new",
        "to_itself": "to_itself",
        "to_etc": "/etc/passwd",
        "to_proc": "/proc/self/environ",
        "to_device": "/dev/zero",
        "to_cwd": "/proc/self/cwd",
        "chain_1": "chain_2",
        "chain_2": "to_folder",
        "mixed": "inner/../../outside/secret",
    }
    (root / "inner").mkdir()
    for name, target in targets.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"\x80\xff\0\xfe")
    (root / "utf16").write_bytes("text".encode("utf-16"))
    (root / "half").write_bytes(b"\xed\xa0\x80")
    return [*(root / name for name in targets), *(root / name for name in ("pipe", "binary", "utf16", "half", "inner"))]


def hostile_paths(root: Path) -> list[str]:
    """More than 200 paths that must not be read."""
    outside = root.parent / "outside"
    found = traps(root)
    ups = ["/".join([*("..",) * depth, "etc", "passwd"]) for depth in range(1, 40)]
    inside = [
        f"{root}/{each}" for each in (*ups, *(f"inner/{each}" for each in ups), *(f"none/{each}" for each in ups))
    ]
    through = [f"{each}/{rest}" for each in found for rest in ("secret", "../outside/secret", "", ".", "x/../secret")]
    names = ["\0", "a\0b", "\udcff", "\ud800", "x" * 256, "x" * 5000, "/".join(["d"] * 3000), "~/secret", "", "."]
    odd = [f"{root}/{name}" for name in names]
    devices = ["/dev/zero", "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/mem", "/proc/self/root/etc/passwd"]
    others = [
        *(
            "",
            ".",
            "..",
            "secret",
            "root/a",
            "~",
            "file:///etc/passwd",
            f"file://{outside}/secret",
            "C:\\Windows",
            "\\\\h\\s",
        ),
        *(str(root), f"{root}x/secret", f"{root}/../rootx", f"/{outside}/secret", f"//{outside}/secret", str(outside)),
        *(
            f"{root}/..",
            f"{root}/../outside/secret",
            f"{root}/./../outside/./secret",
            f"{root}/inner/../../outside/secret",
        ),
    ]
    return [*map(str, found), *inside, *through, *odd, *devices, *others]


def snapshot(folder: Path) -> dict[str, Any]:
    """All files of a folder."""
    return {
        str(each): each.read_bytes() if each.is_file() and not each.is_symlink() else None for each in folder.rglob("*")
    }


@pytest.mark.parametrize("has_folders", [True, False], ids=["folder by folder", "by path, as on Windows"])
def test_no_hostile_path_leads_out(
    acp: Any,
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_folders: bool,
) -> None:
    if not has_folders:
        acp = import_folder(
            shutil.copytree(Path(acp.__file__).parent, tmp_path_factory.mktemp("copy") / "without_folders")
        )
        with monkeypatch.context() as patched:
            patched.setattr(sys, "platform", "win32")  # as the module of the files sees it
            importlib.import_module(f"{acp.__name__}.helpers.files")
    paths = hostile_paths(root)
    assert len(set(paths)) > 200
    outside = root.parent / "outside"
    before = snapshot(outside)
    reads = talk(acp, editor(acp, root), *map(read, paths))
    assert {path: answer for path, answer in zip(paths, reads, strict=True) if answer not in {REFUSED, NOT_FOUND}} == {}
    writes = talk(acp, editor(acp, root), *(write(path, "pwned") for path in paths))
    written = [path for path, answer in zip(paths, writes, strict=True) if answer is None]
    assert all(os.path.realpath(path).startswith(f"{root}{os.sep}") for path in written)
    assert snapshot(outside) == before
    assert sorted(each.name for each in root.parent.iterdir()) == ["outside", "root"]
    assert stat.S_ISFIFO((root / "pipe").stat().st_mode)
    assert (root / "to_file").is_symlink()
    assert not list(root.rglob(".acp-*"))


def test_devices_are_no_files_even_if_everything_is_open(acp: Any) -> None:
    paths = ["/dev/zero", "/dev/null", "/dev/tty", "/dev", "/dev/../dev/zero"]
    kind = editor(acp, Path("/"), max_bytes=1000)
    assert set(talk(acp, kind, *map(read, paths), *(write(path, "") for path in paths))) <= {REFUSED, NOT_FOUND}


def test_the_error_codes(acp: Any, root: Path) -> None:
    traps(root)
    (root / "file").write_text("")
    expected = {
        "none": NOT_FOUND,
        "none/deep": NOT_FOUND,
        "file/below": NOT_FOUND,
        "inner": REFUSED,
        "binary": REFUSED,
        "pipe": REFUSED,
        "to_file": REFUSED,
        "to_nothing": REFUSED,
        "file": "",
    }
    answers = talk(acp, editor(acp, root), *(read(root / name) for name in expected))
    assert dict(zip(expected, answers, strict=True)) == expected
    lone = [write(root / "half-text", "\ud800"), write(root / "inner", ""), write(root / "file/below", "")]
    assert talk(acp, editor(acp, root), *lone) == [REFUSED, REFUSED, NOT_FOUND]


@contextmanager
def swapped(change: Callable[[], None]) -> Iterator[None]:
    """Change the folder without end, in a thread."""
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            with suppress(OSError):
                change()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def race(acp: Any, root: Path, name: str, rounds: int) -> None:
    """Read and write below `root`/swap, which is a folder and a link to the outside in turn."""
    outside, swap, spare = root.parent / "outside", root / "swap", root / "spare"
    swap.mkdir()
    (swap / "secret").write_text("harmless")
    spare.symlink_to(outside)
    before = snapshot(outside)

    def change() -> None:
        third = root / "third"
        swap.rename(third)
        spare.rename(swap)
        third.rename(spare)

    async def main() -> list[Any]:
        answers: list[Any] = []
        async with hand_agent(acp, editor(acp, root)) as agent:
            with swapped(change):
                while len(answers) < rounds or not {"harmless", None} & set(answers):  # until some has succeeded
                    answers.append(await one(agent, len(answers)))
        return answers

    async def one(agent: HandAgent, number: int) -> Any:
        if number % 2:
            answer = await agent.call("fs/write_text_file", path=str(swap / name), content="pwned")
            return answer or None
        answer = await agent.call("fs/read_text_file", path=str(swap / "secret"))
        return answer["content"] if isinstance(answer, dict) else answer

    answers = run(main())
    assert SECRET not in answers
    assert snapshot(outside) == before


@pytest.mark.parametrize("message", [read("swap/secret"), write("swap/secret", "pwned"), write("swap/new", "pwned")])
@pytest.mark.parametrize("name", ["swap", "secret"])
def test_a_link_that_is_put_there_after_the_check(
    acp: Any, root: Path, *, monkeypatch: pytest.MonkeyPatch, message: tuple[str, dict[str, Any]], name: str
) -> None:
    outside = root.parent / "outside"
    (root / "swap").mkdir()
    (root / "swap" / "secret").write_text("harmless")
    before, open_file = snapshot(outside), os.open

    def swap_then_open(path: Any, *args: Any, **options: Any) -> int:
        if path == name and options.get("dir_fd") is not None:
            place = root / "swap" if name == "swap" else root / "swap" / "secret"
            if not place.is_symlink():
                place.rename(root / "moved")
                place.symlink_to(outside if name == "swap" else outside / "secret")
        return open_file(path, *args, **options)

    monkeypatch.setattr(os, "open", swap_then_open)
    method, params = message
    path = str(root / params["path"])
    (answer,) = talk(acp, editor(acp, root), (method, {**params, "path": path}))
    assert answer != SECRET
    assert snapshot(outside) == before


def test_folders_that_become_links_meanwhile(acp: Any, root: Path) -> None:
    race(acp, root, "new", 200)


@pytest.mark.deep
def test_folders_that_become_links_very_often(acp: Any, root: Path) -> None:
    race(acp, root, "new", 3_000)
