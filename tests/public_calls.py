"""The public callables of a package, found by the names that it exports, and what a user does with their results."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from acpgen.parts import all_parts
from acpgen.runtime_modules import place

_OF_PARTS = {module.name for part in all_parts().values() if not part.is_helper for module in part.modules}
MODULES = ("", "helpers", *sorted(name for name in _OF_PARTS if place(name) == name))
"""The modules of a package that users import from; the empty name is the package."""

LEFT_OUT = {
    "ActiveSession": "`StoredAgent.session` makes it",
    "AgentConnection": "`connect` makes it",
    "AgentProcess": "`spawn_agent` makes it",
    "AsgiApp": "`asgi_app` makes it",
    "BlockingStub": "`blocking` makes it",
    "Call": "`from_client` and `from_agent` of a proxy get it",
    "Call.forward": "is tried with overrides",
    "CapabilityError": "a stub raises it",
    "ClientTerminal": "`Terminals.create` makes it",
    "ConnectionLost": "`SessionKeeper` makes it",
    "Decision": "`decides` makes it",
    "Decision.send": "an event loop calls it",
    "Decision.throw": "an event loop calls it",
    "FormField.check": "takes any value, and says why it does not fit",
    "FormError": "`ask_form` raises it",
    "NoAnswer": "`ask_form` makes it",
    "NoAnswerError": "`Session.ask` raises it",
    "UrlVisit": "`ask_url` makes it",
    "after_response": "works in the handler of a request; `tests/test_helpers_turn_calls.py` has the mistake",
    "Gate": "`methods.py` makes it",
    "Gate.replaced": "the package calls it",
    "KeptClient.reopen": "`SessionKeeper` calls it",
    "LoginRestart": "`LoginClient` raises it",
    "MemoryTransport": "`memory_transports` makes it",
    "MessageTooLarge": "a transport raises it",
    "Method": "`methods.py` makes it",
    "Method.replaced": "the package calls it",
    "Reconnecting": "`SessionKeeper` makes it",
    "RecoveryError": "`SessionKeeper` raises it",
    "RunningToolCall": "`tool_call` makes it",
    "Proxy.from_agent": "is overridden: a message makes the call that it gets",
    "Proxy.from_client": "is overridden",
    "ScriptedAgent.die": "would end the process if it served stdin and stdout; here it does what `hang_up` does",
    "ScriptedClient.die": "as that of `ScriptedAgent`",
    "ScriptedTurn.die": "as that of `ScriptedAgent`",
    "ScriptedTurn": "`ScriptedAgent` makes it",
    "Session": "`SessionClient` makes it",
    "Session.handling": "`SessionClient` calls it",
    "Session.set_mode": "needs a session with modes; `tests/test_client_sessions_settings.py` has the mistakes",
    "Session.set_model": "as `set_mode`",
    "Session.set_option": "as `set_mode`",
    "SessionState.follow": "`KeptClient` calls it",
    "SessionState.set_option": "`Session` calls it",
    "SettingLost": "`SessionKeeper` makes it",
    "SessionKeeper": "`tests/test_recovery.py` has its mistakes: it needs an agent that can be started again",
    "SessionKeeper.keep": "takes a session of a `KeptClient`; `tests/test_recovery.py` has the mistake",
    "SessionKeeper.load": "needs its block, and calls that of `SessionClient`",
    "SessionKeeper.open": "as `load`",
    "SessionKeeper.resume": "as `load`",
    "SessionLost": "`SessionKeeper` makes it",
    "SessionRecovered": "`SessionKeeper` makes it",
    "SessionTool": "`SessionTools` makes it",
    "StoredAgent": "is extended, with a store",
    "StreamTransport": "gets what asyncio makes",
    "connect_http.cookies": "is for a library, which says what is wrong with it",
    "connect_http.settings": "are arguments of a library",
    "connect_url.cookies": "is for a library",
    "connect_websocket.settings": "are arguments of a library",
    "main": "is a command: what it gets are texts",
    "StoredAgent.config_options": "is overridden",
    "StoredAgent.on_changed_elsewhere": "is overridden",
    "StoredAgent.on_config_option": "is overridden",
    "StoredAgent.on_open": "is overridden",
    "Turn": "`Session.prompt` makes it",
    "TurnInterruptedError": "a turn raises it",
    "Wire": "a connection makes it",
    "UnsetType": "is an enumeration with one member",
}
"""What is not called, or an argument that stays as it is, by its name, with the reason."""

PROGRAMS = {"run_agent", "run_conductor", "run_proxy"}
"""What is called where no event loop runs."""


@dataclass(frozen=True)
class Callee:
    """A function, a class to construct, or a method of the class `owner`."""

    name: str
    function: Any
    owner: Any = None

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """What the user passes."""
        found = [*inspect.signature(self.function).parameters.values()]
        return found[1:] if self.needs_instance else found

    @property
    def is_async(self) -> bool:
        """True for a coroutine function."""
        return inspect.iscoroutinefunction(inspect.unwrap(self.function))

    @property
    def is_helper(self) -> bool:
        """True for a function or class of a helper."""
        return ".helpers." in self.function.__module__

    @property
    def needs_instance(self) -> bool:
        """True for a method that is neither of a class nor static."""
        return self.owner is not None and not inspect.ismethod(self.function)


def public_callables(acp: ModuleType) -> Iterator[Callee]:
    """All functions, classes and methods that a package exports, but for the classes that follow from the schema."""
    for module in modules_of(acp):
        for name in sorted(getattr(module, "__all__", ["main"])):
            found = getattr(module, name)
            if not getattr(found, "__module__", "").startswith(acp.__name__) or getattr(found, "_is_protocol", False):
                continue
            if inspect.isfunction(found):
                yield Callee(name, found)
            elif inspect.isclass(found) and not found.__module__.endswith(".types"):
                if inspect.isfunction(found.__init__):  # others are as Python has them
                    yield Callee(name, found)
                yield from methods_of(acp, found)


def modules_of(acp: ModuleType) -> Iterator[ModuleType]:
    """The modules of a package that there are."""
    folder = Path(str(acp.__file__)).parent
    for name in MODULES:
        if (folder / name / "__init__.py").is_file() or (folder / f"{name}.py").is_file():
            yield importlib.import_module(f"{acp.__name__}.{name}" if name else acp.__name__)


def methods_of(acp: ModuleType, kind: type[Any]) -> Iterator[Callee]:
    """The public methods of a class, but for those that take nothing, and those of the schema, which only refuse."""
    for name in filter(lambda each: not each.startswith("_"), dir(kind)):
        owner = next(base for base in kind.__mro__ if name in vars(base) or base is object)
        function = inspect.unwrap(getattr(kind, name)) if callable(getattr(kind, name, None)) else None
        is_ours = owner.__module__.startswith(acp.__name__) and not vars(owner).get("METHODS")
        if is_ours and (inspect.isfunction(function) or inspect.ismethod(function)):
            callee = Callee(f"{kind.__name__}.{name}", getattr(kind, name), kind)
            if callee.parameters:
                yield callee


def called(callee: Callee, given: Mapping[str, Any], instance: Any = None) -> Any:
    """Call it. This stands for the code of a user."""
    positional: list[Any] = [instance] if callee.needs_instance else []
    named: dict[str, Any] = {}
    for each in (each for each in callee.parameters if each.name in given):
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL):
            positional.append(given[each.name])
        elif each.kind is each.VAR_KEYWORD:
            named["more"] = given[each.name]
        else:
            named[each.name] = given[each.name]
    return callee.function(*positional, **named)


async def finished(result: Any) -> None:
    """Use a result as a user does: await it, enter its block, or read the first of what it gives."""
    if inspect.isawaitable(result) and not isinstance(result, asyncio.Future):
        found = await result
        if not hasattr(type(found), "has_ended"):  # what goes on already, no block to enter
            await finished(found)
    elif hasattr(type(result), "__aenter__"):
        async with result:
            pass
    elif inspect.isasyncgen(result):
        async for _ in result:
            break
        await result.aclose()
