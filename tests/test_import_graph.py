"""The imports between the modules of acpgen, and of the runtime: no circles, and nothing imports what is above it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support import REPOSITORY

ORDER = (
    *("acpgen", "text", "diagnostics", "files", "flavours", "roles"),
    *("schema", "runtime_modules", "parts", "ir", "emit", "output", "config", "sources", "pipeline"),
    *("drift", "scaffold", "rfd", "show", "diff", "handlers", "reference", "trace", "cli", "__main__"),
)
"""The rooms from the bottom up. A module imports from its own room and from those before it, at any time."""

MODULES = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__"): path
    for path in (REPOSITORY / "acpgen").rglob("*.py")
}


def imported(nodes: Iterable[ast.AST], *, late: bool) -> Iterator[str]:
    """The modules of acpgen that the statements import; those inside functions only with `late`."""
    for node in nodes:
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                full = (f"{module}.{each.name}" for each in names)
                yield from (
                    each if each in MODULES else module for each in full if module.partition(".")[0] == "acpgen"
                )
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in MODULES)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not late:
                pass
            case _:
                yield from imported(ast.iter_child_nodes(node), late=late)


def imports_of(name: str, *, late: bool) -> set[str]:
    """The modules that the module `name` imports. Imports for type checkers count as well."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    return {*imported(tree.body, late=late)} - {name}


def rank(name: str) -> int:
    """The position of the module in the order: that of the longest entry that it is in."""
    parts = name.split(".")
    inner = parts[1:] or parts
    places = [".".join(inner[:length]) for length in range(len(inner), 0, -1)]
    return next(ORDER.index(place) for place in places if place in ORDER)


def test_no_module_imports_itself_through_others() -> None:
    graph = {name: imports_of(name, late=False) for name in MODULES}
    assert graph["acpgen.pipeline"] >= {"acpgen.config", "acpgen.emit.package"}, "at import, and for type checkers"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")


def test_no_room_imports_one_above_it() -> None:
    edges = [(name, target) for name in MODULES for target in imports_of(name, late=True)]
    assert ("acpgen.pipeline", "acpgen.ir.lower") in edges, "imports in functions count, too"
    assert [f"{name} imports {target}" for name, target in edges if rank(name) < rank(target)] == []


# --- The runtime -----------------------------------------------------------------------------------------------------

RUNTIME = {path.stem: path for path in (REPOSITORY / "templates/runtime").rglob("*.py") if path.stem != "__init__"}
LAYERS = (
    *("core", "pydantic", "trace", "handlers", "versions"),
    *("streams", "stdio", "process", "proxy", "network", "remote"),
)
"""The folders of the runtime from the bottom up."""


def runtime_imports(name: str) -> Iterator[str]:
    """The modules of the runtime that a module imports, in functions and for type checkers, too."""
    for node in ast.walk(ast.parse(RUNTIME[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            names = ((node.module or "").rpartition(".")[2], *(each.name for each in node.names if not node.module))
            yield from (each for each in names if each in RUNTIME)


def layer(name: str) -> int:
    """The position of a module in `LAYERS`."""
    return LAYERS.index(RUNTIME[name].relative_to(REPOSITORY / "templates/runtime").parts[0])


def runtime_edges() -> set[tuple[str, str]]:
    return {(name, target) for name in RUNTIME for target in runtime_imports(name)}


def test_no_module_of_the_runtime_imports_itself_through_others() -> None:
    edges = runtime_edges()
    assert ("tasks", "places") in edges, "imports in functions count, too"
    graph: dict[str, set[str]] = {name: set() for name in RUNTIME}
    for name, target in edges:
        graph[name].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' → '.join(error.args[1])}")


def test_no_layer_of_the_runtime_imports_one_above_it() -> None:
    assert len({layer(name) for name in RUNTIME}) == len(LAYERS)
    upwards = [f"{name} imports {target}" for name, target in runtime_edges() if layer(name) < layer(target)]
    assert upwards == []


def test_nothing_touches_a_private_name_of_an_endpoint() -> None:
    """Agents, clients and proxies are its users: they do not derive from it either."""
    for name in RUNTIME.keys() - {"endpoint"}:
        for node in ast.walk(ast.parse(RUNTIME[name].read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert "Endpoint" not in {ast.unparse(base) for base in node.bases}, f"{name}, line {node.lineno}"
            if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Attribute, ast.Name)):
                owner = node.value.attr if isinstance(node.value, ast.Attribute) else node.value.id
                is_private = owner in {"endpoint", "_endpoint"} and node.attr.startswith("_")
                assert not is_private, f"{name}, line {node.lineno}: {node.attr}"
