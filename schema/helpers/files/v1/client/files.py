"""Files: what agents may read and write, confined to the folders that the user has opened."""

from __future__ import annotations

import asyncio
import contextvars
import errno
import os
import stat
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from ..client import Client, RemoteAgent
from ..decision import explains
from ..errors import InternalError, InvalidParamsError, RequestError, ResourceNotFoundError
from ..types import ReadTextFileRequest, ReadTextFileResponse, WriteTextFileRequest, WriteTextFileResponse

__all__ = ["FileClient", "Files"]

T = TypeVar("T")

_BOM: Final = b"\xef\xbb\xbf"
_MAX_PATH: Final = 4096
_USUAL_MODE: Final = 0o666  # the system applies the umask
_AT_OPENING: Final[int] = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # a pipe without a writer would hang
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_FOLDER: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _AT_OPENING
_HAS_FOLDERS: Final = sys.platform != "win32"  # files can be opened relative to an open folder
_REFUSED: Final = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL, errno.ENXIO}
)
"""Errors that the agent can avoid, by another path."""


class Files:
    """Text files in UTF-8 below `roots`, which are folders; without roots, there are none.

    A path has to be absolute. Links are followed as long as they stay below a root: the resolved path is compared, and
    then opened folder by folder without following another link. So a link that is put there meanwhile leads nowhere
    (but on Windows, where a process that swaps folders while a file is opened can get around it). A hard link in
    a root is a file of that root.

    `max_bytes` bounds what is read of a file, and what is written. Line ends are left as they are; a byte order mark is
    not part of the text, and a file that has one keeps it.
    """

    @explains
    def __init__(self, *roots: str | os.PathLike[str], write: bool = True, max_bytes: int = 8 << 20) -> None:
        self.roots: Final = tuple(os.path.realpath(root) for root in roots)
        self.write: Final = write
        self.max_bytes: Final = max_bytes

    def resolve(self, path: str) -> str:
        """The path without links. Raises `InvalidParamsError` if it is not absolute, or not below a root."""
        if "\0" in path or len(path) > _MAX_PATH:
            raise InvalidParamsError(f"the path has a NUL, or more than {_MAX_PATH} characters")
        if not os.path.isabs(path):
            raise InvalidParamsError(f"{_shown(path)}: the path must be absolute")
        try:
            resolved = os.path.realpath(path)
        except (OSError, ValueError) as error:  # half a surrogate pair, for instance
            raise InvalidParamsError("the path is not one of this system") from error
        self._root_of(resolved)
        return resolved

    def read_text(self, path: str, *, line: int = 1, limit: int | None = None) -> str:
        """At most `limit` lines of a file, from `line` on, counted from 1; "" if the file has fewer.

        Raises `ResourceNotFoundError` without a file, and `InvalidParamsError` for a path that is refused or is no
        regular file, for text that is no UTF-8, and for lines beyond the first `max_bytes`.
        """
        with _reported(path):
            data = self._read(self.resolve(path))
            is_cut = len(data) > self.max_bytes
            if is_cut:
                data = data[: data.rfind(b"\n", 0, self.max_bytes) + 1]
            text = data.removeprefix(_BOM).decode("utf-8")
        found, is_whole = _lines(text, line, limit)
        if is_cut and not is_whole:
            what = f"the file is larger than {self.max_bytes} bytes"
            raise InvalidParamsError(f"{_shown(path)}: {what}: ask for lines at its start, with a `limit`")
        return found

    def write_text(self, path: str, text: str) -> None:
        """Make a file or replace it, and make its folders. It has the old content or the new one, never a part.

        A file keeps its mode. Raises `InvalidParamsError` for a path that is refused, a file that must not be written,
        and a text that is too long.
        """
        with _reported(path):
            if not self.write:
                raise InvalidParamsError("files cannot be written here")
            resolved = self.resolve(path)
            data = text.encode("utf-8")
            if len(data) > self.max_bytes:
                raise InvalidParamsError(f"{path}: the text has more than {self.max_bytes} bytes")
            with self._folder_of(resolved, make=True) as (folder, name):
                _replace(folder, name, data)

    def _root_of(self, resolved: str) -> str:
        for root in self.roots:
            if resolved == root or resolved.startswith(root.rstrip(os.sep) + os.sep):
                return root
        raise InvalidParamsError("the path leads out of the folders that this client has opened")

    def _read(self, resolved: str) -> bytes:
        """Up to a byte more than `max_bytes`."""
        with self._folder_of(resolved, make=False) as (folder, name):
            handle = os.open(name, os.O_RDONLY | _AT_OPENING, dir_fd=folder)
            with open(handle, "rb", buffering=0) as file:
                _check_regular(os.fstat(handle))
                parts, room = list[bytes](), self.max_bytes + 1
                while room and (part := file.read(min(room, 1 << 20))):
                    parts.append(part)
                    room -= len(part)
        return b"".join(parts)

    @contextmanager
    def _folder_of(self, resolved: str, *, make: bool) -> Generator[tuple[int | None, str], None, None]:
        """The folder of a file, opened without following a link below the root, and the file's name in it."""
        root = self._root_of(resolved)
        *parents, name = os.path.relpath(resolved, root).split(os.sep)
        if not _HAS_FOLDERS:
            if make:
                os.makedirs(os.path.dirname(resolved), exist_ok=True)
            self._root_of(os.path.realpath(resolved))
            yield None, resolved
            return
        folder = os.open(root, _FOLDER)
        try:
            for parent in parents:
                inner = _open_folder(folder, parent, make=make)
                os.close(folder)
                folder = inner
            yield folder, name
        finally:
            os.close(folder)


class FileClient(Client):
    """A client whose agent reads and writes files. Set `files` to those that it may use: by default there are none.

        class Editor(FileClient):
            def __init__(self, agent: RemoteAgent) -> None:
                super().__init__(agent)
                self.files = Files(Path.cwd())

    An editor overrides `unsaved_text` and `save_text`. The disk is used in a thread, for one file at a time.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.files = Files()
        self._disk = asyncio.Lock()

    async def unsaved_text(self, path: str) -> str | None:
        """The text of a file that is open in the editor; None to read it from the disk. The path has no links."""
        return None

    async def save_text(self, path: str, text: str) -> bool:
        """Put a text into the open file of the editor, and save it; False to write it to the disk instead."""
        return False

    async def fs_read_text_file(self, params: ReadTextFileRequest) -> ReadTextFileResponse:
        """Read lines of a file."""
        line, limit = params.line, params.limit
        first, count = line if isinstance(line, int) else 1, limit if isinstance(limit, int) else None
        text = await self.unsaved_text(await self._on_disk(self.files.resolve, params.path))
        if text is None:
            text = await self._on_disk(partial(self.files.read_text, line=first, limit=count), params.path)
        else:
            text, _ = _lines(text, first, count)
        return ReadTextFileResponse(content=text)

    async def fs_write_text_file(self, params: WriteTextFileRequest) -> WriteTextFileResponse:
        """Write a file."""
        if not self.files.write:
            raise InvalidParamsError("files cannot be written here")
        path = await self._on_disk(self.files.resolve, params.path)
        if not _is_saved(await self.save_text(path, params.content), f"{type(self).__name__}.save_text"):
            await self._on_disk(partial(self.files.write_text, text=params.content), params.path)
        return WriteTextFileResponse()

    async def _on_disk(self, work: Callable[[str], T], path: str) -> T:
        context = contextvars.copy_context()

        def run() -> T:
            return context.run(work, path)

        await self._disk.acquire()
        try:
            running = asyncio.get_running_loop().run_in_executor(None, run)
        except BaseException:
            self._disk.release()
            raise
        answer = asyncio.shield(running)  # first, so that this request goes on before the next one has the disk
        running.add_done_callback(lambda _: self._disk.release())  # a thread goes on when the task is cancelled
        return await answer


def _is_saved(answer: object, method: str) -> bool:
    """The answer of an editor. Raises `TypeError` for any other than a bool: what was not awaited is true."""
    if not isinstance(answer, bool):
        found = f"{method} returned {type(answer).__name__}"
        raise TypeError(f"{found}; expected True if it has saved the text, and False if not")
    return answer


def _open_folder(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise InvalidParamsError("the path does not name a regular file")


def _lines(text: str, line: int, limit: int | None) -> tuple[str, bool]:
    """At most `limit` lines from `line` on, and False if the text ends before. Only a line feed ends a line."""
    start = _after(text, 0, max(line, 1) - 1)
    if start is None:
        return "", False
    end = None if limit is None else _after(text, start, limit)
    return text[start:end], end is not None


def _after(text: str, start: int, count: int) -> int | None:
    """The place after `count` lines; None if the text ends before it."""
    place = start
    for _ in range(count):
        place = text.find("\n", place) + 1
        if not place:
            return None
    return place


def _replace(folder: int | None, name: str, data: bytes) -> None:
    """Write a new file beside the old one, then give it the name. `folder` is open, or part of `name`."""
    old = _existing(folder, name)
    if old is not None:
        _check_regular(old)
        if not os.access(name, os.W_OK, dir_fd=folder):
            raise PermissionError(errno.EACCES, "the file may not be written")
        if _starts_with_mark(folder, name) and not data.startswith(_BOM):
            data = _BOM + data
    beside = os.path.join(os.path.dirname(name), f".acp-{os.urandom(8).hex()}.tmp")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _AT_OPENING, _USUAL_MODE, dir_fd=folder)
    try:
        with open(handle, "wb", buffering=0) as file:
            if old is not None and _HAS_FOLDERS:
                _keep_owner_and_mode(handle, old)
            view = memoryview(data)
            while view:
                view = view[file.write(view) :]
            os.fsync(handle)
        os.replace(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _existing(folder: int | None, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _starts_with_mark(folder: int | None, name: str) -> bool:
    try:
        with open(os.open(name, os.O_RDONLY | _AT_OPENING, dir_fd=folder), "rb") as file:
            return file.read(len(_BOM)) == _BOM
    except PermissionError:  # a file that may be written, but not read
        return False


def _keep_owner_and_mode(handle: int, old: os.stat_result) -> None:
    if sys.platform != "win32":
        with suppress(PermissionError):
            os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)


def _shown(path: str) -> str:
    return path[:_MAX_PATH].encode("utf-8", "replace").decode()


@contextmanager
def _reported(path: str) -> Generator[None, None, None]:
    """Turn errors of the system into those of the protocol."""
    shown = _shown(path)
    try:
        yield
    except RequestError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ResourceNotFoundError(shown) from error
    except UnicodeError as error:
        raise InvalidParamsError(f"{shown}: the text is not valid UTF-8") from error
    except OSError as error:
        kind = InvalidParamsError if error.errno in _REFUSED else InternalError
        raise kind(f"{shown}: {error.strerror}") from error
