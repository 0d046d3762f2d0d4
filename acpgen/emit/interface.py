"""What the text of a package defines: its public names and their kinds, and the handlers of its roles.

The text may be that of an older acpgen, or of anybody: it is searched, and not run. What is found is for messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from acpgen.roles import Role

_DEFINITION = re.compile(
    r"^(?:(?P<class>class) |(?P<function>(?:async )?def ))?(?P<name>[A-Za-z]\w*)"
    r"(?(class)[(:]|(?(function)\(|: TypeAlias = (?P<literal>Literal\[)?))",
    re.MULTILINE,
)
_CALLED = re.compile(r"^(?: {4})?([A-Za-z]\w{0,200}) = Type(?:AliasType|dDict)\(", re.MULTILINE)
"""Types of models that are recursive, or have keys that are no identifiers."""
_HANDLER = re.compile(r"^    async def (\w{1,200})\(", re.MULTILINE)
_PUBLIC = "\n__all__ = ["
_NAME = re.compile(r"""["']([^\W\d]\w{0,200})["']""")
_METHOD = re.compile(r'\bMethod\(\s*"([^"\\\n]{1,200})",\s*"(\w{1,200})"')
_MODULES = frozenset({"__init__.py", "types.py", "methods.py", *(f"{role.record.name}.py" for role in Role)})


def is_read(path: str) -> bool:
    """Whether the file at `path` in a package defines what is found here."""
    return path.count("/") < 2 and path.rpartition("/")[2] in _MODULES


def names(files: Mapping[str, str]) -> frozenset[str]:
    """The public names of a package, those of a version with its subpackage ("v1.Agent"). `files` are texts by path."""
    top = _exported(files.get("__init__.py", ""))
    inits = ((path.rpartition("/")[0], text) for path, text in files.items() if path.endswith("/__init__.py"))
    return top | {f"{folder}.{name}" for folder, text in inits if folder in top for name in _exported(text)}


def _exported(text: str) -> frozenset[str]:
    """The names in `__all__`, of both sides of a merge; without it, as in a module of models, the types."""
    if parts := text.split(_PUBLIC)[1:]:
        return frozenset(name for part in parts for name in _NAME.findall(part.partition("]")[0]))
    return frozenset(
        {*_CALLED.findall(text), *(name for name, kind in kinds({"": text}).items() if kind != "function")}
    )


def kinds(files: Mapping[str, str]) -> dict[str, str]:
    """The kind of each name that a package defines: class, function, literal or alias. `files` are texts by path."""
    found: dict[str, str] = {}
    for path, text in files.items():
        folder = path.rpartition("/")[0]
        for match in _DEFINITION.finditer(text):
            kind = next((each for each in ("class", "function", "literal") if match[each]), "alias")
            found[f"{folder}.{match['name']}" if folder else match["name"]] = kind
    return found


def handlers(files: Mapping[str, str]) -> dict[tuple[str, str], dict[str, str]]:
    """The handlers by folder and class to extend, each with the name of its method on the wire."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for path, text in files.items():
        folder, _, name = path.rpartition("/")
        role = next((each.record for each in Role if f"{each.record.name}.py" == name), None)
        if role is not None:
            table = files.get(f"{folder}/methods.py" if folder else "methods.py", "")
            wires = {python: wire for wire, python in _METHOD.findall(table)}
            own = [each for each in _HANDLER.findall(_body(text, role.base)) if each in wires]
            found[folder, role.base] = {each: wires[each] for each in own}
    return found


def _body(text: str, name: str) -> str:
    """The text of the class `name`."""
    start = re.search(rf"^class {name}\b", text, re.MULTILINE)
    if start is None:
        return ""
    end = re.compile(r"^\S", re.MULTILINE).search(text, start.end())
    return text[start.end() : end.start() if end else len(text)]
