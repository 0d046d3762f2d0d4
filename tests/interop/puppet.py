"""Our side of every pair: an agent or a client that records what it receives, and sends what a test scripts.

The test drives it by `control`: in its own process, or through `_interop/…` requests of the peer. The puppets of the
peers understand the same orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

CONTROL = "_interop/"
Json = Any


class Puppet:
    """What is common to both roles."""

    def __init__(self, acp: ModuleType, role: str, answers: Mapping[str, Json]) -> None:
        """`acp` is a package of one version, or the part of a package that has several."""
        self.acp = acp
        self.base = {"agent": acp.Agent, "client": acp.Client}[role]
        self.stub: Any = None
        self.answers: dict[str, Json] = dict(answers)
        self.log: list[Json] = []
        self._news = asyncio.Event()
        self._calls: dict[str, asyncio.Task[Any]] = {}

    def options(self, package: ModuleType, trace: Path | None = None) -> Any:
        """The options for a connection: what the schema's leniency leaves out is noted, for nothing should be.

        What is sent may be invalid, and need capabilities that the peer has not advertised: all messages are tried.
        """
        return package.ConnectionOptions(
            check_sent=False,
            check_capabilities=False,
            on_drop=lambda drop: self._note({"dropped": str(drop)}),
            trace=trace,
        )

    def factory(self, stub: Any) -> Any:
        """The handler for a connection, in the role of this puppet."""
        self.stub = stub
        routes = {**self.base.REQUESTS, **self.base.NOTIFICATIONS}
        handlers = {route.handler: self._handler(method) for method, route in routes.items()}
        handlers |= {"ext_method": self._ext_method, "ext_notification": self._ext_notification}
        del handlers["cancel_request"]
        return type("Handler", (self.base,), handlers)(stub)

    def _handler(self, method: str) -> Any:
        async def handle(_self: Any, params: Any) -> Any:
            answer = await self._take(method, self.acp.encode(params))
            result = self.base.METHODS[method].result
            return None if result is None else self.acp.decode(result, answer)

        return handle

    async def _ext_method(self, method: str, params: Json) -> Json:
        if method.startswith(CONTROL):
            return await self.control(method.removeprefix(CONTROL), params)
        return await self._take(method, params)

    async def _ext_notification(self, method: str, params: Json) -> None:
        await self._take(method, params)

    # --- What comes in -------------------------------------------------------------------------------------------

    def _note(self, entry: Json) -> None:
        self.log.append(entry)
        self._news.set()

    async def _until(self, condition: Any) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def _take(self, method: str, params: Json) -> Json:
        self._note({"method": method, "params": params})
        plan = self.answers.get(method, {})
        for message in plan.get("first", ()):
            self._note({"asked": message["method"], "got": await self._say(message)})
        if "raise" in plan:
            raise RuntimeError(plan["raise"])
        if "error" in plan:
            raise self.acp.RequestError.from_json(plan["error"])
        if plan.get("hold"):
            await self._hold(method)
        return plan.get("result")

    async def _hold(self, method: str) -> None:
        """Wait for `session/cancel`, or to be cancelled."""
        try:
            await self._until(lambda: any(entry.get("method") == "session/cancel" for entry in self.log))
        except asyncio.CancelledError:
            self._note({"cancelled": method})
            raise

    # --- What the test says --------------------------------------------------------------------------------------

    async def control(self, order: str, params: Json) -> Json:
        """Do what the test says; `order` is the name of a method of this class."""
        return await getattr(self, f"_order_{order}")(params)

    async def _order_reset(self, params: Json) -> Json:
        self.answers.update(params["answers"])
        self.log.clear()
        return {}

    async def _order_seen(self, params: Json) -> Json:
        await self._until(lambda: len(self.log) >= params["count"])
        return {"log": self.log}

    async def _order_say(self, params: Json) -> Json:
        task = self._calls[params.get("key", "")] = asyncio.ensure_future(self._say(params))
        try:
            return await task
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            return {"cancelled": True}

    async def _order_abort(self, params: Json) -> Json:
        self._calls[params["key"]].cancel()
        return {}

    async def _say(self, message: Json) -> Json:
        """Send a message, through the stub if it can: what came back."""
        method, params = message["method"], message["params"]
        known = self.base.PEER_METHODS.get(method)
        try:
            if message.get("notify") and known is None:
                await self.stub.ext_notification(method, params)
                return {}
            if known is None or message.get("raw"):
                return {"result": await self.stub.ext_method(method, params)}
            result = await getattr(self.stub, known.handler)(self.acp.decode(known.params, params))
        except self.acp.RequestError as error:
            return {"error": error.to_json()}
        return {} if known.result is None else {"result": self.acp.encode(result)}
