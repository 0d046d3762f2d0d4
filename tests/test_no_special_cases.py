"""acpgen knows the language of ACP's schemas, and nothing of what they say: no name of the protocol is in its code.

What it emits, and what the project says of itself, is looked at here too.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import RoleChoice
from acpgen.schema.bundled import list_releases
from acpgen.schema.data import data_folder
from tests.support import REPOSITORY, foreign_imports, model_of, package_files

SCHEMAS = data_folder() / "schema"
SOURCES = [
    *sorted(REPOSITORY.glob("acpgen/**/*.py")),
    *sorted(REPOSITORY.glob("templates/**/*.jinja*")),
    *sorted(REPOSITORY.glob("templates/runtime/**/*.py")),
]

ALLOWED = {
    "Error": "how Python names exceptions, and so the end of the name of each exception that stands for an error code",
    "ErrorCode": "the model's record of a code of JSON-RPC 2.0, whose errors have one with any schema",
    "Role": "the side of the connection that a package is for",
    "authenticate": "a part of the name of a header of HTTP, www-authenticate",
    "initialize": "the hint to a gate that starts nowhere: the one method whose messages hold capabilities",
}
"""Names of the protocol that acpgen may say all the same, each with the reason."""


# --- The names of the protocol -----------------------------------------------------------------------------------


def schema_files() -> list[Path]:
    return [*SCHEMAS.glob("v*/*/schema.json"), *SCHEMAS.glob("extensions/v*/*.json")]


@cache
def protocol_names() -> frozenset[str]:
    """Every definition, every method by its name on the wire, and every handler by its name in Python."""
    roots = [json.loads(path.read_text(encoding="utf-8")) for path in schema_files()]
    definitions = {name: node for root in roots for name, node in root.get("$defs", {}).items()}
    methods = {method for root in roots for method in methods_in(root)}
    assert {"ContentBlock", "AuthMethodState", "UpdateSessionNotification"} <= definitions.keys()
    assert {"session/prompt", "getAuthState", "$/cancel_request"} <= methods
    return frozenset({*definitions, *methods, *handler_names()})


def methods_in(root: Mapping[str, Any]) -> Iterator[str]:
    for node in root.get("$defs", {}).values():
        if isinstance(node, dict) and "x-method" in node:
            yield node["x-method"]


def handler_names() -> Iterator[str]:
    for release in list_releases():
        model, _ = model_of(SchemaChoice(protocol=release.protocol, release=release.name))
        yield from (method.name for method in model.methods)


# --- What the code says ------------------------------------------------------------------------------------------


def spoken(text: str, path: Path) -> str:
    """The text of a source file without what only people read: comments and docstrings."""
    return python_code(text) if path.suffix == ".py" else template_code(text)


def python_code(text: str) -> str:
    """The names and strings of a Python file, a line each."""
    prose = set(docstring_lines(ast.parse(text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kept = [token.string for token in tokens if token.type != tokenize.COMMENT and token.start not in prose]
    return "\n".join(kept)


def docstring_lines(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Where strings start that stand alone as a statement: docstrings, of attributes too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield (node.lineno, node.col_offset)


def template_code(text: str) -> str:
    without_comments = re.sub(r"\{#.*?#\}", "", text, flags=re.DOTALL)
    without_docstrings = re.sub(r'"""(?:[^"\\]|\\.|"(?!""))*"""', "", without_comments)
    return re.sub(r"^\s*#.*$", "", without_docstrings, flags=re.MULTILINE)


@cache
def name_pattern() -> re.Pattern[str]:
    """Any of the names as a whole word; longer ones first, for one may be the start of another."""
    names = sorted(protocol_names(), key=lambda name: (-len(name), name))
    return re.compile(rf"(?<![\w$])(?:{'|'.join(map(re.escape, names))})(?!\w)")


def names_in(path: Path) -> set[str]:
    return set(name_pattern().findall(spoken(path.read_text(encoding="utf-8"), path)))


@cache
def names_by_file() -> Mapping[str, set[str]]:
    found = {path.relative_to(REPOSITORY).as_posix(): names_in(path) for path in SOURCES}
    return {path: names for path, names in found.items() if names}


def test_the_code_names_nothing_of_the_protocol() -> None:
    found = {path: sorted(names - ALLOWED.keys()) for path, names in names_by_file().items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_every_exception_is_needed() -> None:
    needed = {name for names in names_by_file().values() for name in names}
    assert ALLOWED.keys() - needed == set()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# ContentBlock\nkind = 'ContentBlock'", {"ContentBlock"}),
        ('def visit(node):\n    """As in session/prompt."""\n    return node["session/prompt"]', {"session/prompt"}),
        ('def session_prompt():\n    """Prompt."""', {"session_prompt"}),
        ('class Model:\n    """ContentBlock."""\n    x: int\n    """ContentBlock."""', set()),
        ("ContentBlocks = MyContentBlock = 'my_session_prompt'", set()),
    ],
)
def test_names_are_found_in_code_and_not_in_prose(text: str, found: set[str], tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    assert names_in(tmp_path / "module.py") == found


def test_names_are_found_in_templates(tmp_path: Path) -> None:
    template = tmp_path / "module.py.jinja"
    template.write_text(
        '{# SessionId #}\n# SessionId\n"""SessionId."""\n{% if name == "ContentBlock" %}{% endif %}', encoding="utf-8"
    )
    assert names_in(template) == {"ContentBlock"}


# --- What is generated, and what the project says of itself ------------------------------------------------------


@pytest.mark.full
@pytest.mark.parametrize("protocol", [1, 2])
def test_generated_code_imports_the_standard_library_alone(protocol: int) -> None:
    files = package_files(SchemaChoice(protocol=protocol), RoleChoice.BOTH.roles)
    modules = [ast.parse(text) for path, text in files.items() if path.endswith(".py")]
    assert [name for module in modules for name in foreign_imports(module)] == []


def test_a_foreign_import_is_seen() -> None:
    assert foreign_imports(ast.parse("def f():\n    import os.path, jinja2\n    from black.mode import Mode")) == [
        *("jinja2", "black.mode"),
    ]


RUNTIME = [*REPOSITORY.glob("templates/**/*.py"), *SCHEMAS.glob("helpers/**/*.py")]
PRIVATE_ELSEWHERE = {
    "_exit": "of os: ends a process without clean-up",
    "_getframe": "of sys: the caller of a function",
}
"""Names that the runtime also uses, with what tests mean by them."""
LOOKS = {"getattr", "setattr", "hasattr", "delattr", "attrgetter", "methodcaller", "import_module"}


@cache
def private_names() -> frozenset[str]:
    """The private names of the runtime, its modules among them."""
    texts = [f"{path.stem} {path.read_text(encoding='utf-8')}" for path in RUNTIME]
    return frozenset(word for text in texts for word in re.findall(r"(?<!\w)_[a-zA-Z]\w*", text))


def names_read(tree: ast.AST) -> Iterator[str]:
    """Attributes of objects other than `self`, what is imported, and what functions look up by its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value, name) if ast.unparse(value) not in ("self", "cls", "super()"):
                yield name
            case ast.Import() | ast.ImportFrom() if not ast.unparse(node).startswith(("from acpgen", "from tests")):
                yield from re.findall(r"\w+", ast.unparse(node))
            case ast.Call(func=ast.Name(name) | ast.Attribute(attr=name), args=args) if name in LOOKS:
                parts = (part for arg in args for part in ast.walk(arg) if isinstance(part, ast.Constant))
                yield from (word for part in parts for word in str(part.value).split("."))


def test_tests_read_nothing_private_of_packages() -> None:
    """They meet what users meet, so that the runtime can be rearranged. `items_in` shows what is left behind."""
    paths = [path for path in REPOSITORY.glob("tests/**/*.py") if "golden" not in path.parts]
    found = [(path.name, name) for path in paths for name in names_read(ast.parse(path.read_text(encoding="utf-8")))]
    private = {(path, name) for path, name in found if name in private_names()}
    assert {each for each in private if each[1] not in PRIVATE_ELSEWHERE} == set()
    assert PRIVATE_ELSEWHERE.keys() == {name for _, name in private}


def test_a_private_name_is_seen_in_each_form() -> None:
    assert {"_base", "_pending"} <= private_names()
    text = "package._base\nx.y._pending\ngetattr(x, '_a')\nimport_module(f'{p}._b')\nfrom p._c import _d\nself._own"
    found = {name for name in names_read(ast.parse(text)) if name.startswith("_")}
    assert found == {"_base", "_pending", "_a", "_b", "_c", "_d"}


FOREIGN = {
    "a folder of one machine": re.compile(r"(?<![\w.~])/(?:root|work|opt)/\w"),
    "a registry of packages": re.compile(
        r"pypi\.(?:org|python)|pythonhosted\.|registry\.\w+\.\w+|--(?:extra-)?index-url"
    ),
}
"""What must not be in the project: it works on any machine, with whatever registry that has been set up for."""


def project_files() -> list[Path]:
    """The files that people wrote, this one apart: the folders of tools and of built packages are not among them.

    In a worktree, `.git` is a file.
    """
    folders = ("acpgen", "templates", "schema", "tests", "generated", "docs", "examples", "benchmarks", ".ci")
    inside = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")]
    files = [path for path in [*REPOSITORY.iterdir(), *inside] if path.is_file() and path != Path(__file__).resolve()]
    return [path for path in files if path.suffix not in (".pyc", ".png") and path.name not in (".coverage", ".git")]


@pytest.mark.parametrize("what", FOREIGN)
def test_the_project_speaks_of_itself_alone(what: str) -> None:
    assert REPOSITORY / "pyproject.toml" in project_files()
    found = {
        path.relative_to(REPOSITORY).as_posix(): matches
        for path in project_files()
        if (matches := FOREIGN[what].findall(path.read_text(encoding="utf-8")))
    }
    assert found == {}
