"""What the text of a package defines: the kinds of its names, and the handlers of its roles.

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
_HANDLER = re.compile(r"^    async def (\w{1,200})\(", re.MULTILINE)
_METHOD = re.compile(r'\bMethod\(\s*"([^"\\\n]{1,200})",\s*"(\w{1,200})"')
_MODULES = frozenset({"types.py", "methods.py", *(f"{role.record.name}.py" for role in Role)})


def is_read(path: str) -> bool:
    """Whether the file at `path` in a package defines what is found here."""
    return path.count("/") < 2 and path.rpartition("/")[2] in _MODULES


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
