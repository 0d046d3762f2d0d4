"""Our proxy between two others: `python -X dev our_proxy.py FOLDER PACKAGE KIND AGENT ...`, a command or a URL.

KIND is "empty" for one without methods, "typed" for one that hands on all messages by its types, or "two" for both.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

Factories = Mapping[int, Any]


def proxies_of(acp: Any, kind: str) -> list[Factories]:
    """The proxies of a kind, each for both versions."""
    bases = {1: acp.v1.Proxy, 2: acp.v2.Proxy}
    typed = {version: _typed(base) for version, base in bases.items()}
    return {"empty": [bases], "typed": [typed], "two": [bases, typed]}[kind]


def _typed(base: Any) -> Any:
    """A class that overrides each method, and hands on what it gets."""

    def handing_on(name: str) -> Callable[..., Any]:
        async def handler(self: Any, params: Any) -> Any:
            return await getattr(super(kind, self), name)(params)

        return handler

    names = [name for name, value in vars(base).items() if inspect.iscoroutinefunction(value)]
    kind = type(f"Typed{base.__name__}", (base,), {name: handing_on(name) for name in names})
    return kind


def main(folder: str, package: str, kind: str, *agent: str) -> None:
    sys.path.insert(0, folder)
    acp = importlib.import_module(package)
    print("our proxy has begun")  # if this got on the wire, nobody would go on
    target: Any = agent
    if "://" in agent[0]:
        target = importlib.import_module(f"{package}.network").NetworkAgent(agent[0])
    acp.run_conductor(proxies_of(acp, kind), target)


if __name__ == "__main__":
    main(*sys.argv[1:])
