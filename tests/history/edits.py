"""The edits that a comparison calls for, made to the source of an agent."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from tests.history.comparison import Found

VALUES: Mapping[tuple[str, str], str] = {
    ("RequestPermissionRequest", "title"): "'May I?'",
    ("PromptResponse", "messageId"): "'message-1'",
}
"""What people put where a property has become required."""

INSTEAD: Mapping[str, str] = {
    "AuthMethod": "AuthMethodAgent",
    "SessionUpdateStateUpdateIdle": "SessionUpdateStateUpdateIdleEndTurn",
}
"""Which member of a union people take where there was a class."""


def snake(name: str) -> str:
    """The name of a method or a property in packages."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip("_")).lower().replace("/", "_")


def edited(body: str, findings: Sequence[Found]) -> tuple[str, list[str]]:
    """The source after the edits that `findings` name as breaking source, and those findings that it took.

    Names come first, as the other findings use the new ones. Findings of code that is not there change nothing. Where
    an edit needs a decision, it is in the tables.
    """
    taken: list[str] = []
    breaking = [finding for finding in findings if finding.verdict == "breaks"]
    for finding in sorted(breaking, key=lambda each: not each.rule.endswith("-renamed")):
        tree = ast.parse(body)
        changed = ast.unparse(ast.fix_missing_locations(_edit(finding).visit(tree)))
        if changed != ast.unparse(ast.parse(body)):
            taken.append(str(finding))
            body = changed
    return body, taken


def _edit(finding: Found) -> ast.NodeTransformer:
    match finding:
        case Found(rule="type-renamed", type=str(new), was=str(old)):
            return _Class(old, new)
        case Found(rule="type-kind-changed", type=str(name)) if name in INSTEAD:
            assert re.search(rf"\b{INSTEAD[name]}\b", finding.message), finding
            return _Class(name, INSTEAD[name], constructed_only=True)
        case Found(rule="method-renamed", method=str(new), was=str(old)):
            return _Handler(snake(old), snake(new))
        case Found(rule="method-removed", method=str(old)):
            return _Handler(snake(old), None)
        case Found(rule="field-renamed", type=str(owner), member=str(new), was=str(old)):
            return _Argument(owner, snake(old), snake(new))
        case Found(rule="field-removed-optional" | "field-removed-required", type=str(owner), member=str(old)):
            return _Argument(owner, snake(old), None)
        case Found(rule="field-added-required" | "field-made-required", type=str(owner), member=str(new)):
            return _Argument(owner, None, snake(new), VALUES.get((owner, new)))
        case _:
            return ast.NodeTransformer()


class _Class(ast.NodeTransformer):
    """Gives a class another name."""

    def __init__(self, old: str, new: str, *, constructed_only: bool = False) -> None:
        self.old, self.new, self.constructed_only = old, new, constructed_only

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == self.old:
            node.func.id = self.new
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self.old and not self.constructed_only:
            node.id = self.new
        return node


class _Handler(ast.NodeTransformer):
    """Gives a handler another name, or takes it away."""

    def __init__(self, old: str, new: str | None) -> None:
        self.old, self.new = old, new

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST | None:
        if node.name != self.old:
            return self.generic_visit(node)
        if self.new is None:
            return None
        node.name = self.new
        return node


class _Argument(ast.NodeTransformer):
    """Gives an argument of a constructor another name, takes it away, or adds it."""

    def __init__(self, owner: str, old: str | None, new: str | None, value: str | None = None) -> None:
        self.owner, self.old, self.new, self.value = owner, old, new, value

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id == self.owner):
            return node
        if self.old is None and all(each.arg != self.new for each in node.keywords):
            assert self.value is not None, f"what is {self.new} of {self.owner} to be?"
            node.keywords.append(ast.keyword(self.new, ast.parse(self.value, mode="eval").body))
        elif self.old is not None and self.new is None:
            node.keywords = [each for each in node.keywords if each.arg != self.old]
        for each in node.keywords:
            if self.old is not None and each.arg == self.old:
                each.arg = self.new
        return node
