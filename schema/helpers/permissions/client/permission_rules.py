"""Rules for permissions: they answer questions without asking the user. Answers for good are remembered as rules."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any, Final, Literal, TypeAlias, get_args

from ..decision import explains
from ..places import caller
from .operation_facts import FOR_ONE_FILE
from .permission_file import FileBusyError, PermissionFile
from .permission_records import folded, read_record, why_once, write_record
from .permission_subjects import KINDS, RuleKind
from .tool_subjects import PermissionPath, PermissionRecord, PermissionSubject

__all__ = ["PermissionDecision", "PermissionRule", "PermissionRules"]

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]
"""The answer to a question, or "ask" to ask the user."""

logger: Final = logging.getLogger("acp")

_MAX_RULES: Final = 1000
_MAX_TEXT: Final = 4096
_CONDITIONS: Final = ("kind", "tool", "path", "command", "input")
_VERSION: Final = 3
"""Of the rules in a file. Those without it were remembered for more than what was shown, and records of the second
version lack the title, and the input of what was read."""


@dataclass(frozen=True)
class PermissionRule:
    """A decision about the questions that match all attributes which are not None.

    `kind` is that of the tool, one that the protocol names: a write is an `edit`. One that is unknown is logged, unless
    it starts with `_`. `tool` is its name in code, and never its title, which the model writes. `path` is a file,
    a folder with all that is in it, or a pattern with `*`, which also stands for slashes; nothing else is special.
    Links are resolved, in a pattern those of the folders before the first `*`. `command` is compared as a whole, with
    its arguments. `input` is a digest. A rule without any is for all questions.

    `record` is for rules that are remembered, and stands alone: a rule that allows is for this record, and no other.
    """

    decision: PermissionDecision
    kind: RuleKind | None = None
    tool: str | None = None
    path: str | None = None
    command: str | None = None
    input: str | None = None
    record: PermissionRecord | None = None
    _pieces: tuple[str, ...] | None = field(init=False, repr=False, compare=False)
    """Those of the path, as it was when the rule was made."""

    def __post_init__(self) -> None:
        if self.decision not in get_args(PermissionDecision):
            raise ValueError(f"decision must be one of {', '.join(get_args(PermissionDecision))}")
        if self.path is not None and not os.path.isabs(self.path) and not self.path.startswith("*"):
            raise ValueError(f"path must be absolute, or a pattern that starts with *: {self.path!r:.200}")
        if self.record is not None and any(getattr(self, name) is not None for name in _CONDITIONS):
            raise ValueError("a rule has a record or other conditions")
        kind: object = self.kind
        if isinstance(kind, str) and kind not in KINDS and not kind.startswith("_"):
            known = ", ".join(sorted(KINDS))
            logger.warning("a rule%s is for tools of the kind %r, which is none of %s", caller(), kind[:100], known)
        pieces = None if self.path is None else _pieces(self.path, os.path.realpath)
        if self.path is not None and pieces is None:
            raise ValueError(f"path must be one of this system: {self.path!r:.200}")
        object.__setattr__(self, "_pieces", pieces)

    def applies_to(self, subject: PermissionSubject) -> bool | None:
        """True if the rule is for a question; None if the question does not say enough to know.

        To be allowed, all paths of a question have to be in `path`, and a command must have no variables of the agent.
        To be denied, one path is enough, by its name or by where it leads, and so is the program of a command; upper
        and lower case are the same then, as they are for many file systems. If the agent has reported otherwise than it
        asks, a rule that denies is for either, and one that allows only for both.
        """
        if self.record is not None and self.decision == "allow":
            return subject.record == self.record
        answers = [self._applies_to_reading(each) for each in subject.readings]
        return _all(answers) if self.decision == "allow" else _any(answers)

    def _applies_to_reading(self, subject: PermissionSubject) -> bool | None:
        if self.record is not None:
            return _any([_is_about(each, subject) for each in self.record.readings])
        answers = [
            None if said is None else said == wanted
            for wanted, said in (
                (self.kind, subject.kind),
                (self.tool, subject.tool),
                (self.input, subject.input),
            )
            if wanted is not None
        ]
        if self.command is not None:
            answers.append(self._runs(subject))
        if self.path is not None:
            answers.append(self._covers(subject) if subject.files else None)
        return _all(answers)

    def _runs(self, subject: PermissionSubject) -> bool | None:
        if subject.command is None:
            return None
        whole = shlex.join([subject.command, *subject.args]) if subject.args else subject.command
        if self.decision == "allow":
            return whole == self.command and not subject.env
        return any(_is_program(self.command or "", each) for each in (whole, subject.command))

    def _covers(self, subject: PermissionSubject) -> bool | None:
        if self.decision == "allow":
            return _all([self._holds(each) for each in subject.files])
        now = {self._pieces, *(_pieces(self.path or "", form) for form in (os.path.realpath, os.path.normpath))}
        patterns = [*map(_pieces_folded, now)]
        return _any([any(_is_in(each, patterns) for each in names) if names else None for names in subject.names])

    def _holds(self, path: PermissionPath | None) -> bool | None:
        if path is None or self._pieces is None:
            return None
        return all(_is_in(os.path.normcase(each), [self._pieces]) for each in (path.name, path.target))


def _all(answers: Sequence[bool | None]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _any(answers: Sequence[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _pieces(path: str, form: Callable[[str], str]) -> tuple[str, ...] | None:
    """A path as one piece, or the pieces of a pattern between its stars; None if it is no path of this system."""
    head, *others = path.split("*")
    folder, name = os.path.split(head) if others else (head, "")
    try:
        head = os.path.join(form(folder), name) if others and folder else form(head) if head else ""
    except (OSError, ValueError):
        return None
    return tuple(map(os.path.normcase, (head, *others)))


def _pieces_folded(pieces: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if pieces is None else tuple(map(folded, pieces))


def _is_program(wanted: str, command: str) -> bool:
    """True if two commands are the same, but for the case of the program."""
    (program, rest), (other, others) = _program(wanted), _program(command)
    name = folded(program)
    return rest == others and len(other) <= len(name) and folded(other) == name  # folding makes no text shorter


def _program(command: str) -> tuple[str, str]:
    program, space, rest = command.partition(" ")
    return program, space + rest


def _is_in(path: str, patterns: Iterable[tuple[str, ...] | None]) -> bool:
    return any(pieces is not None and _matches(path, *pieces) for pieces in patterns)


def _matches(path: str, first: str, *others: str) -> bool:
    if not others:
        return path == first or path.startswith(first.rstrip(os.sep) + os.sep)
    if not path.startswith(first):
        return False
    place = len(first)
    *between, last = others
    for each in between:
        place = path.find(each, place) + len(each)
        if place < len(each):
            return False
    return len(path) - len(last) >= place and path.endswith(last)


def _is_about(record: PermissionRecord, subject: PermissionSubject) -> bool | None:
    """True if the subject has what the record says, whatever was said besides; None if that cannot be known.

    A title denies nothing, and what was refused for a file, or for a command, is so with another input.
    """
    pairs: list[tuple[object, object]] = [(record.kind, subject.kind), (record.tool, subject.tool)]
    is_of_file = record.kind in FOR_ONE_FILE and len(record.files) == 1 and record.command is None
    if not is_of_file:
        pairs.append((record.folder and record.folder.target, subject.place and subject.place.target))
    if record.command is not None:
        command = None if subject.command is None else (subject.command, subject.args, subject.env)
        pairs.append(((record.command, record.args, record.env), command))
    elif not is_of_file:
        pairs.append((record.input, subject.input))
    answers = [None if said is None else said == wanted for wanted, said in pairs if wanted is not None]
    answers += [_is_among(file, subject) for file in record.files]
    return _all(answers)


def _is_among(file: PermissionPath, subject: PermissionSubject) -> bool | None:
    names = {folded(file.name), folded(file.target)}
    return _any([not names.isdisjoint(each) if each else None for each in subject.names] or [None])


class PermissionRules:
    """A policy: rules, and those that are remembered from answers of the user.

    The strictest rule that applies wins, in any order: deny, then ask, then allow. Without one, the user is asked; so
    it is where a rule that denies or asks might apply, because the question does not say enough, unless the user has
    allowed the same before.

    With `path`, what is remembered is kept in this file, which only the user can read, and which several processes may
    share: what one remembers or forgets holds in all. Raises `ValueError` if it holds something else than rules, or is
    no regular file, and `OSError` if it cannot be read.
    """

    @explains
    def __init__(self, *rules: PermissionRule, path: str | os.PathLike[str] | None = None) -> None:
        self._rules: Final = rules
        self._file: Final = None if path is None else PermissionFile(path)
        self._saved: list[PermissionRule] = []
        self._unsaved: list[PermissionRule] = []
        self._stamp: object = None
        self._lock: Final = Lock()  # of these three, never held while something waits
        self._is_saving = False
        if self._file is not None:
            self._load(self._file)

    @property
    def remembered(self) -> Sequence[PermissionRule]:
        """The rules that are remembered, in this order."""
        self._refresh()
        return (*self._saved, *self._unsaved)

    def decide(self, subject: PermissionSubject) -> PermissionDecision:
        """The decision about a question."""
        found = [(rule, rule.applies_to(subject)) for rule in (*self._rules, *self.remembered)]
        decisions = {rule.decision for rule, applies in found if applies}
        for strict in ("deny", "ask"):
            if strict in decisions:
                return strict
        might_deny = any(rule.decision != "allow" and applies is None for rule, applies in found)
        was_asked = any(applies and (rule.record or rule.input) is not None for rule, applies in found)
        return "allow" if "allow" in decisions and (was_asked or not might_deny) else "ask"

    def remember(self, *rules: PermissionRule) -> None:
        """Let rules hold from now on. If the file cannot be written, that is logged, and they hold in this process.

        While another process has the file, they are written as soon as it is free, in a thread: this waits for nobody.
        """
        with self._lock:
            self._unsaved = _with(self._unsaved, rules)
            if self._file is None or self._is_saving:
                return
            self._is_saving = True
        try:
            self._save(self._file, wait=False)
        except FileBusyError:
            Thread(target=self._save_until_done, args=(self._file,), name="permissions").start()
            return
        except BaseException:
            self._is_saving = False
            raise
        self._is_saving = False

    def remember_answer(self, subject: PermissionSubject, decision: PermissionDecision) -> None:
        """Remember an answer of the user about what was shown; nothing if that does not say what it is about."""
        if subject.record is None:
            logger.warning("an answer holds once, not always: %s", why_once(subject))
        else:
            self.remember(PermissionRule(decision, record=subject.record))

    def forget(self) -> None:
        """Forget the rules that are remembered, in the file and in all processes that use it, too.

        Raises `OSError` if that fails. It waits for up to five seconds while another process has the file.
        """
        with self._lock:
            unsaved, self._unsaved = self._unsaved, []  # so that no thread writes them
        try:
            if self._file is not None:
                self._file.remove()
        except OSError:
            self._unsaved = [*unsaved, *self._unsaved]
            raise
        with self._lock:
            self._saved, self._stamp = [], None

    def _load(self, file: PermissionFile) -> None:
        try:
            objects, self._stamp = file.read()
            self._saved = _read(objects)
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{file.path} has no permission rules ({error}): repair or delete it") from error
        if len(self._saved) < len(objects):
            logger.warning(
                "%s has rules to allow of an earlier version, which are too wide: they are dropped, and %s",
                file.path,
                "the user is asked again",
            )

    def _save_until_done(self, file: PermissionFile) -> None:
        """Write what is remembered, also meanwhile."""
        while True:
            is_written = self._save(file, wait=True)
            with self._lock:
                if not is_written or not self._unsaved:
                    self._is_saving = False
                    return

    def _save(self, file: PermissionFile, *, wait: bool) -> bool:
        """Write what is remembered; false if it cannot be. Raises `FileBusyError` if it may not wait."""
        saved, added = list[PermissionRule](), list[PermissionRule]()

        def add(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
            added.extend(self._unsaved)
            saved.extend(_with(_read(objects), added))
            return [_write(each) for each in saved]

        try:
            stamp = file.change(add, wait=wait)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            logger.warning("permissions cannot be kept in %s: %s", file.path, error)
            return False
        with self._lock:
            self._saved, self._stamp = saved, stamp
            self._unsaved = [each for each in self._unsaved if each not in added]
        return True

    def _refresh(self) -> None:
        """Read the file again if another process has changed it."""
        if self._file is not None:
            try:
                if self._file.stamp() != self._stamp:
                    objects, stamp = self._file.read()
                    saved = _read(objects)
                    with self._lock:
                        self._saved, self._stamp = saved, stamp
            except (OSError, ValueError, TypeError, RecursionError) as error:
                logger.warning("permissions cannot be read from %s: %s", self._file.path, error)


def _with(known: Sequence[PermissionRule], rules: Iterable[PermissionRule]) -> list[PermissionRule]:
    found = dict.fromkeys(known)
    for rule in rules:
        if rule not in found and (len(found) >= _MAX_RULES or len(json.dumps(_write(rule))) > _MAX_TEXT):
            logger.warning("a rule is not remembered: its text is too long, or there are %d rules", _MAX_RULES)
        else:
            found[rule] = None
    return list(found)


def _write(rule: PermissionRule) -> dict[str, Any]:
    said = {name: getattr(rule, name) for name in ("decision", *_CONDITIONS) if getattr(rule, name) is not None}
    return {"version": _VERSION, **said, **({} if rule.record is None else {"record": write_record(rule.record)})}


def _read(objects: list[dict[str, Any]]) -> list[PermissionRule]:
    """The rules of a file, but for those of earlier versions that allow: they are for more than what was shown."""
    if len(objects) > _MAX_RULES:
        raise ValueError(f"there are more than {_MAX_RULES} rules")  # one that is left out may deny
    found = list[PermissionRule]()
    for each in objects:
        said = dict(each)
        version = said.pop("version", 1)
        record = said.pop("record", None)
        if not all(value is None or isinstance(value, str) for value in said.values()):
            raise ValueError("a value is not text")
        rule = PermissionRule(**said, record=None if record is None else read_record(record))
        if version == _VERSION or rule.decision != "allow" or (version == 2 and rule.record is None):
            found.append(rule)
    return found
