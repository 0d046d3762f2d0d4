"""Rules for permissions: they answer questions without asking the user. Answers for good are remembered as rules."""

from __future__ import annotations

import fnmatch
import json
import logging
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

from .tool_subjects import PermissionSubject

__all__ = ["PermissionDecision", "PermissionRule", "PermissionRules"]

PermissionDecision: TypeAlias = Literal["allow", "ask", "deny"]
"""The answer to a question, or "ask" to ask the user."""

logger: Final = logging.getLogger("acp")

_MAX_RULES: Final = 1000
_MAX_BYTES: Final = 4 << 20
_MAX_TEXT: Final = 4096
_FILE_KINDS: Final = frozenset({"read", "edit", "delete", "move", "search"})


@dataclass(frozen=True)
class PermissionRule:
    """A decision about the questions that match all attributes which are not None.

    `kind` is that of the tool, `tool` its name in code, and never its title, which the model writes. `path` is a file,
    a folder with all that is in it, or a pattern with `*`, which also stands for slashes; links are resolved. `command`
    is compared as a whole. `input` is a digest, for rules that are remembered. A rule without any is for all questions.
    """

    decision: PermissionDecision
    kind: str | None = None
    tool: str | None = None
    path: str | None = None
    command: str | None = None
    input: str | None = None

    def __post_init__(self) -> None:
        if self.decision not in get_args(PermissionDecision):
            raise ValueError(f"decision must be one of {', '.join(get_args(PermissionDecision))}")
        if self.path is not None and not os.path.isabs(self.path) and not self.path.startswith("*"):
            raise ValueError(f"path must be absolute, or a pattern that starts with *: {self.path!r:.200}")

    def applies_to(self, subject: PermissionSubject) -> bool | None:
        """True if the rule is for a question; None if the question does not say enough to know.

        To be allowed, all paths of a question have to be in `path`; to be denied, one.
        """
        answers = [
            None if said is None else said == wanted
            for wanted, said in (
                (self.kind, subject.kind),
                (self.tool, subject.tool),
                (self.command, subject.command),
                (self.input, subject.input),
            )
            if wanted is not None
        ]
        if self.path is not None:
            answers.append(self._covers(subject.paths))
        return False if False in answers else None if None in answers else True

    def _covers(self, paths: Iterable[str]) -> bool | None:
        found = [_is_in(each, self.path or "") if os.path.isabs(each) else None for each in paths]
        if not found:
            return None
        if self.decision == "allow":
            return False if False in found else None if None in found else True
        return True if True in found else None if None in found else False


def _is_in(path: str, pattern: str) -> bool | None:
    try:
        resolved, wanted = os.path.realpath(path), pattern if "*" in pattern else os.path.realpath(pattern)
    except (OSError, ValueError):  # it is no path of this system
        return None
    if "*" in wanted:
        return fnmatch.fnmatchcase(resolved, wanted)
    return resolved == wanted or resolved.startswith(wanted.rstrip(os.sep) + os.sep)


def rule_for(subject: PermissionSubject, decision: PermissionDecision) -> PermissionRule | None:
    """The narrowest rule for further questions like this; None if the question does not say enough.

    A tool for files is remembered for a file, if it is one; everything else for the same command in the same folder, or
    for the same input.
    """
    path = os.path.realpath(subject.paths[0]) if len(subject.paths) == 1 and os.path.isabs(subject.paths[0]) else None
    kind, tool = subject.kind, subject.tool
    if path is not None and "*" in path:
        return None
    if path is not None and kind in _FILE_KINDS:
        return PermissionRule(decision, kind=kind, tool=tool, path=path)
    if subject.input is not None:
        return PermissionRule(decision, kind=kind, tool=tool, path=path, input=subject.input)
    if subject.command is not None:
        return PermissionRule(decision, kind=kind, tool=tool, path=path, command=subject.command)
    return None


class PermissionRules:
    """A policy: rules, and those that are remembered from answers of the user.

    The strictest rule that applies wins, in any order: deny, then ask, then allow. Without one, the user is asked; so
    it is where a rule that denies or asks might apply, because the question does not say enough, unless the user has
    allowed the same input before.

    With `path`, what is remembered is kept in this file, which only the user can read. Raises `ValueError` if it holds
    something else than rules, and `OSError` if it cannot be read.
    """

    def __init__(self, *rules: PermissionRule, path: str | os.PathLike[str] | None = None) -> None:
        self._rules: Final = rules
        self._path = None if path is None else Path(path)
        self._remembered = [] if self._path is None else _load(self._path)

    @property
    def remembered(self) -> Sequence[PermissionRule]:
        """The rules that were remembered, in this order."""
        return tuple(self._remembered)

    def decide(self, subject: PermissionSubject) -> PermissionDecision:
        """The decision about a question."""
        found = [(rule, rule.applies_to(subject)) for rule in (*self._rules, *self._remembered)]
        decisions = {rule.decision for rule, applies in found if applies}
        for strict in ("deny", "ask"):
            if strict in decisions:
                return strict
        might_deny = any(rule.decision != "allow" and applies is None for rule, applies in found)
        was_asked = any(rule.input is not None and applies for rule, applies in found)  # about the same input
        return "allow" if "allow" in decisions and (was_asked or not might_deny) else "ask"

    def remember(self, *rules: PermissionRule) -> None:
        """Let rules hold from now on. If the file cannot be written, that is logged, and they hold in this process."""
        for rule in rules:
            too_long = any(isinstance(each, str) and len(each) > _MAX_TEXT for each in asdict(rule).values())
            if too_long or len(self._remembered) >= _MAX_RULES:
                logger.warning("a rule is not remembered: its text is too long, or there are %d rules", _MAX_RULES)
            elif rule not in self._remembered:
                self._remembered.append(rule)
        if self._path is not None:
            try:
                self._save(self._path)
            except (OSError, ValueError) as error:
                logger.warning("permissions cannot be kept in %s: %s", self._path, error)

    def forget(self) -> None:
        """Forget the rules that were remembered, in the file, too. Raises `OSError` if that fails."""
        self._remembered.clear()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _save(self, path: Path) -> None:
        others = [each for each in _load(path) if each not in self._remembered]  # of other processes
        self._remembered += others[: _MAX_RULES - len(self._remembered)]
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        rules = [
            {name: value for name, value in asdict(rule).items() if value is not None} for rule in self._remembered
        ]
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "w", encoding="ascii") as file:
                json.dump(rules, file, indent=1)
            os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise


def _load(path: Path) -> list[PermissionRule]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    try:
        if len(data) > _MAX_BYTES:
            raise ValueError("it is too large")
        raw: list[dict[str, Any]] = json.loads(data)
        rules = [PermissionRule(**each) for each in raw]
        if not all(value is None or isinstance(value, str) for rule in rules for value in asdict(rule).values()):
            raise ValueError("a value is not text")
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} has no permission rules ({error}): repair or delete it") from error
    return rules[:_MAX_RULES]
