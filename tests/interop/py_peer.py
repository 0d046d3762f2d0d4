"""The Python SDK's side of a pair: python py_peer.py ROLE VERSION SDK-FOLDER ANSWERS [COMMAND OF THE AGENT ...]

Runs where the SDK is installed, and not in the environment of the tests. An agent is driven by `_interop/…` requests,
a client by lines of JSON on stdin: {id, order, params}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from acp import RequestError, connect_to_agent, run_agent, schema
from pydantic import TypeAdapter

CONTROL = "interop/"  # the SDK takes the underscore away, and adds it
LIMIT = 2**24
Json = Any

AGENT: dict[str, tuple[str, Any, Any]] = {
    "initialize": ("initialize", schema.InitializeRequest, schema.InitializeResponse),
    "authenticate": ("authenticate", schema.AuthenticateRequest, schema.AuthenticateResponse),
    "session/new": ("new_session", schema.NewSessionRequest, schema.NewSessionResponse),
    "session/load": ("load_session", schema.LoadSessionRequest, schema.LoadSessionResponse),
    "session/list": ("list_sessions", schema.ListSessionsRequest, schema.ListSessionsResponse),
    "session/resume": ("resume_session", schema.ResumeSessionRequest, schema.ResumeSessionResponse),
    "session/close": ("close_session", schema.CloseSessionRequest, schema.CloseSessionResponse),
    "session/set_mode": ("set_session_mode", schema.SetSessionModeRequest, schema.SetSessionModeResponse),
    "session/set_config_option": (
        "set_config_option",
        schema.SetSessionConfigOptionBooleanRequest | schema.SetSessionConfigOptionSelectRequest,
        schema.SetSessionConfigOptionResponse,
    ),
    "session/prompt": ("prompt", schema.PromptRequest, schema.PromptResponse),
    "session/cancel": ("cancel", schema.CancelNotification, None),
}
CLIENT: dict[str, tuple[str, Any, Any]] = {
    "session/update": ("session_update", schema.SessionNotification, None),
    "session/request_permission": (
        "request_permission",
        schema.RequestPermissionRequest,
        schema.RequestPermissionResponse,
    ),
    "fs/read_text_file": ("read_text_file", schema.ReadTextFileRequest, schema.ReadTextFileResponse),
    "fs/write_text_file": ("write_text_file", schema.WriteTextFileRequest, schema.WriteTextFileResponse),
    "terminal/create": ("create_terminal", schema.CreateTerminalRequest, schema.CreateTerminalResponse),
    "terminal/output": ("terminal_output", schema.TerminalOutputRequest, schema.TerminalOutputResponse),
    "terminal/wait_for_exit": (
        "wait_for_terminal_exit",
        schema.WaitForTerminalExitRequest,
        schema.WaitForTerminalExitResponse,
    ),
    "terminal/kill": ("kill_terminal", schema.KillTerminalRequest, schema.KillTerminalResponse),
    "terminal/release": ("release_terminal", schema.ReleaseTerminalRequest, schema.ReleaseTerminalResponse),
    "elicitation/create": (
        "create_elicitation",
        schema.CreateElicitationRequest,
        schema.CreateElicitationResponse,
    ),
    "elicitation/complete": ("complete_elicitation", schema.CompleteElicitationNotification, None),
}


def dump(value: Any) -> Json:
    """A value of the SDK as JSON, with what was set on the way in, and nothing else."""
    return TypeAdapter(Any).dump_python(value, mode="json", by_alias=True, exclude_unset=True)


class Puppet:
    """What is common to both roles."""

    def __init__(self, own: dict[str, Any], others: dict[str, Any], answers: dict[str, Json]) -> None:
        self.others = others
        self.answers = answers
        self.log: list[Json] = []
        self.news = asyncio.Event()
        self.calls: dict[str, asyncio.Task[Json]] = {}
        self.peer: Any = None
        for method, (name, params, result) in own.items():
            setattr(self, name, self.handler(method, params, result))

    def on_connect(self, peer: Any) -> None:
        self.peer = peer

    def handler(self, method: str, params: Any, result: Any) -> Any:
        async def handle(**arguments: Any) -> Any:
            answer = await self.take(method, as_message(params, arguments))
            return None if result is None else TypeAdapter(result).validate_python(answer)

        return handle

    async def ext_method(self, method: str, params: Json) -> Json:
        if method.startswith(CONTROL):
            return await self.control(method.removeprefix(CONTROL), params)
        return await self.take(f"_{method}", params)

    async def ext_notification(self, method: str, params: Json) -> None:
        await self.take(f"_{method}", params)

    def note(self, entry: Json) -> None:
        self.log.append(entry)
        self.news.set()

    async def until(self, condition: Any) -> None:
        while not condition():
            self.news.clear()
            await self.news.wait()

    async def take(self, method: str, params: Json) -> Json:
        self.note({"method": method, "params": params})
        plan = self.answers.get(method, {})
        for message in plan.get("first", ()):
            self.note({"asked": message["method"], "got": await self.say(message)})
        if "raise" in plan:
            raise RuntimeError(plan["raise"])
        if error := plan.get("error"):
            raise RequestError(error["code"], error["message"], error.get("data"))
        if plan.get("hold"):
            try:
                await self.until(lambda: any(entry.get("method") == "session/cancel" for entry in self.log))
            except asyncio.CancelledError:
                self.note({"cancelled": method})
                raise
        return plan.get("result")

    async def control(self, order: str, params: Json) -> Json:
        return await getattr(self, f"order_{order}")(params)

    async def order_reset(self, params: Json) -> Json:
        self.answers.update(params["answers"])
        self.log.clear()
        return {}

    async def order_seen(self, params: Json) -> Json:
        await self.until(lambda: len(self.log) >= params["count"])
        return {"log": self.log}

    async def order_say(self, params: Json) -> Json:
        task = self.calls[params.get("key", "")] = asyncio.ensure_future(self.say(params))
        try:
            return await task
        except asyncio.CancelledError:
            return {"cancelled": True}

    async def order_abort(self, params: Json) -> Json:
        self.calls[params["key"]].cancel()
        return {}

    async def say(self, message: Json) -> Json:
        method, params = message["method"], message["params"]
        try:
            if method.startswith("_") and message.get("notify"):
                await self.peer.ext_notification(method[1:], params)
                return {}
            if method.startswith("_"):
                return {"result": await self.peer.ext_method(method[1:], params)}
            if message.get("raw"):
                return {"result": await self.peer._conn.send_request(method, params)}
            if method not in self.others:
                return {"failure": f"the SDK has no {method}"}
            name, kind, result = self.others[method]
            answer = await getattr(self.peer, name)(**as_arguments(TypeAdapter(kind).validate_python(params)))
        except RequestError as error:
            return {"error": {"code": error.code, "message": str(error), "data": error.data}}
        except (TypeError, ValueError, OSError) as error:  # of the SDK's own checks, or of a connection that is lost
            return {"failure": f"{type(error).__name__}: {error}"}
        return {} if result is None else {"result": dump(answer)}


def as_message(params: Any, arguments: dict[str, Any]) -> Json:
    """What a handler got, as JSON; the SDK passes None for what is absent, and `_meta` beside the rest."""
    mode = arguments.pop("mode", None)
    fields = {name: value for name, value in arguments.items() if value is not None}
    if mode is not None:  # of an elicitation, which has more than one form
        kind = "form" if hasattr(mode, "requested_schema") else "url"
        return {"mode": kind, **fields, **mode.model_dump(mode="json", by_alias=True, exclude_none=True)}
    names = {name: field.alias or name for name, field in fields_of(params).items()}
    message = {names[name]: dump(value) for name, value in fields.items() if name in names}
    if meta := {name: dump(value) for name, value in fields.items() if name not in names}:
        message["_meta"] = meta
    if "type" in names and isinstance(fields.get("value"), bool):
        message["type"] = "boolean"  # the SDK tells it by the value alone
    return message


def fields_of(params: Any) -> dict[str, Any]:
    kinds = getattr(params, "__args__", (params,))
    return {name: field for kind in kinds for name, field in kind.model_fields.items()}


def as_arguments(params: Any) -> dict[str, Any]:
    """How the methods of the SDK want the params."""
    fields = {name: getattr(params, name) for name in params.model_fields_set}
    if "mode" not in fields:
        return {name: value for name, value in fields.items() if name != "field_meta"} | (
            fields.get("field_meta") or {}
        )
    message = fields.pop("message")
    scope = "Session" if "session_id" in fields else "Request"
    kind = getattr(schema, f"Elicitation{fields.pop('mode').capitalize()}{scope}Mode")
    return {"message": message, "mode": kind(**fields)}


async def agent(answers: dict[str, Json]) -> None:
    await run_agent(Puppet(AGENT, CLIENT, answers), use_unstable_protocol=True)


async def client(answers: dict[str, Json], command: list[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=LIMIT
    )
    puppet = Puppet(CLIENT, AGENT, answers)
    connect_to_agent(puppet, process.stdin, process.stdout, use_unstable_protocol=True)
    await obey_lines(puppet)
    process.stdin.close()
    print(json.dumps({"exit": await process.wait()}), flush=True)


async def obey_lines(puppet: Puppet) -> None:
    """Obey the orders on stdin, until it ends."""
    orders = asyncio.StreamReader(limit=LIMIT)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    tasks = set()
    while line := await orders.readline():
        task = asyncio.ensure_future(obey(puppet, json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


async def obey(puppet: Puppet, line: Json) -> None:
    print(json.dumps({"id": line["id"], **await puppet.control(line["order"], line["params"])}), flush=True)


def main(role: str, _version: str, _folder: str, answers: str, *command: str) -> None:
    loaded = json.loads(Path(answers).read_text(encoding="utf-8"))
    asyncio.run(agent(loaded) if role == "agent" else client(loaded, list(command)))


if __name__ == "__main__":
    main(*sys.argv[1:])
