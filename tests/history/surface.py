"""What code may do with the classes of a package: their constructors, as they stand in the source."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.history.comparison import Found
from tests.history.edits import snake


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a constructor, which is an attribute of the same type, too."""

    required: bool
    type: str


Surface = Mapping[str, Mapping[str, Argument]]
"""The arguments by class."""


def read_surface(package: Path) -> Surface:
    """The constructors of a package."""
    tree = ast.parse((package / "types.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    return {name: _arguments(node, classes) for name, node in classes.items()}


def _arguments(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> Mapping[str, Argument]:
    """The annotated attributes of a class and its bases."""
    inherited = [_arguments(classes[_name(base)], classes) for base in node.bases if _name(base) in classes]
    own = {
        each.target.id: Argument(each.value is None, _text(each.annotation))
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return {name: argument for found in (*inherited, own) for name, argument in found.items()}


def _name(base: ast.expr) -> str:
    return base.id if isinstance(base, ast.Name) else ""


def _text(annotation: ast.expr | None) -> str:
    return "" if annotation is None else ast.unparse(annotation)


def unfound(old: Surface, new: Surface, findings: Sequence[Found]) -> list[str]:
    """What is another between two packages, and has no finding of its own."""
    renamed = {each.was: each.type for each in findings if each.rule == "type-renamed"}
    breaking = [each for each in findings if each.verdict == "breaks"]
    broken = {(each.type, snake(name)) for each in breaking for name in (each.member, each.was) if name}
    touched = {(each.type, snake(each.member)) for each in findings if each.member}
    other_kind = {each.type for each in breaking if each.rule in ("type-kind-changed", "type-removed")}
    missing: list[str] = []
    for name, before in old.items():
        known = renamed.get(name, name)
        if known not in new:
            missing += [] if known in other_kind else [f"{name} is gone"]
            continue
        after = new[known]
        lost = {(known, each) for each in before.keys() - after.keys()}
        needed = {(known, each) for each, now in after.items() if now.required and not _is_required(before, each)}
        missing += [f"{owner}({each}=…)" for owner, each in (lost | needed) - broken]
        retyped = {
            (known, each)
            for each in before.keys() & after.keys()
            if _renamed_in(before[each].type, renamed) != _renamed_in(after[each].type, {})
        }
        missing += [f"the type of {owner}.{each}" for owner, each in retyped - touched]
    return sorted(missing)


def _is_required(arguments: Mapping[str, Argument], name: str) -> bool:
    return name in arguments and arguments[name].required


def _renamed_in(annotation: str, renamed: Mapping[str | None, str | None]) -> str:
    """The annotation with the new names of classes."""
    tree = ast.parse(annotation, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = renamed.get(node.id) or node.id
    return ast.unparse(tree)
