"""A model server on loopback that does what the prompt says, for published agents: `python -m tests.peers.model PORT`.

It speaks the four interfaces that agents of today use: OpenAI's chat and responses, Anthropic's messages and Gemini's
contents, each as a stream. The last message of the user has the steps as JSON, such as `DO[{"run": "echo a"}]DO`:

| step | what the model does |
|---|---|
| `{"run": COMMAND}` | calls the agent's tool for commands; with `"inside": true`, it does not ask to leave a sandbox |
| `{"write": PATH, "text": TEXT}` | calls its tool that writes a file |
| `{"read": PATH}` | calls its tool that reads a file |
| `{"say": COUNT, "as": WORD}` | says so many words, slowly: WORD0, WORD1, … |
| `{"fail": STATUS}` | answers with this HTTP status |

When all steps are done, it says "done". What the agent asks besides, as for a title, is answered with "done", too.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
PIECE_SECONDS = 0.05
"""Between two words of a slow answer."""
TOOLS = {
    "run": r"^bash$|shell|exec_command|run_command|^execute",
    "write": r"^write_?file$|^write$|create_file",
    "read": r"^read_?file$|^read$|read_text",
}
"""The names that agents give to their tools, by the step that needs one."""
NOT_TOOLS = r"kill|output$|stop$|image|todo"
_ALSO = ("content", "file_text", "sandbox_permissions", "justification")
"""Properties that are given where they are known, required or not: codex asks about what leaves its sandbox."""
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the agent offers."""

    name: str
    schema: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks, in no interface's words."""

    text: str
    """The last message of the user."""
    done: int
    """How many tools have been called since."""
    tools: list[Tool]
    schema: Json | None = None
    """Of the JSON that the answer has to be, for what an agent asks besides."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says, and the tool that it calls then."""

    words: list[str]
    call: tuple[str, Json] | None = None
    is_slow: bool = False

    @property
    def text(self) -> str:
        return " ".join(self.words)


class ModelError(Exception):
    """The answer is an HTTP error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the model fails with {status}, as it was told")
        self.status = status


def reply(asked: Asked) -> Reply:
    """The answer to a request; raises `ModelError`."""
    if asked.schema is not None:
        return Reply([json.dumps(arguments(asked.schema, "", {}))])
    found = re.findall(r"DO(\[.*?\])DO", asked.text.replace('\\"', '"'))
    steps = json.loads(found[-1]) if found else []  # of several messages without an answer, agents may make one
    if asked.done >= len(steps):
        return Reply(["done"])
    step = steps[asked.done]
    if "fail" in step:
        raise ModelError(step["fail"])
    if "say" in step:
        return Reply([f"{step.get('as', 'word')}{at}" for at in range(step["say"])], is_slow=True)
    kind = next(iter(step))
    tool = _tool(asked.tools, kind)
    if tool is None and (tool := _tool(asked.tools, "run")) is not None:
        kind, step = "run", {"run": _command(step)}
    if tool is None:
        return Reply(["no", "tool", "to", kind])
    return Reply(["I", kind], (tool.name, arguments(tool.schema, kind, step)))


def _command(step: Json) -> str:
    """A command for a step, for codex, which reads and edits by its tool for commands."""
    if "read" in step:
        return f"cat {shlex.quote(step['read'])}"
    lines = "".join(f"+{line}\n" for line in step["text"].splitlines())
    return f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {step['write']}\n{lines}*** End Patch\nEOF"


def _tool(tools: Iterable[Tool], kind: str) -> Tool | None:
    fitting = (each for each in tools if re.search(TOOLS[kind], each.name, re.IGNORECASE))
    return next((each for each in fitting if not re.search(NOT_TOOLS, each.name, re.IGNORECASE)), None)


def arguments(schema: Json, kind: str, step: Json) -> Json:
    """What a tool is called with: what it requires, filled by the names of its properties."""
    known: Json = schema.get("properties") or {}
    wanted = [*(schema.get("required") or known), *(name for name in _ALSO if name in known)]
    return {name: _value(name.lower(), known.get(name) or {}, kind, step) for name in dict.fromkeys(wanted)}


def _value(name: str, schema: Json, kind: str, step: Json) -> Any:
    match str(schema.get("type", "string")).lower():
        case "array":
            return ["bash", "-lc", step["run"]] if kind == "run" else []
        case "integer" | "number":
            return 60_000 if "ms" in name or "timeout" in name else 1
        case "boolean":
            return False
        case "object":
            return {}
    if schema.get("enum"):
        return schema["enum"][-1 if name == "sandbox_permissions" and "inside" not in step else 0]
    if "path" in name or name in {"file", "filename"}:
        return step.get("write") or step.get("read") or ""
    if name in {"command", "cmd", "script"}:
        return step.get("run", "")
    return step.get("text", "text") if name in {"content", "text", "file_text"} else kind


# --- The four interfaces: what a request asks, and the events of the answer -------------------------------------------


def _texts(content: object) -> str:
    """The text of a content that is a text, or a list of parts with texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))


def _since_user(
    messages: list[Json], is_user: Callable[[Json], bool], results: Callable[[Json], int]
) -> tuple[str, int]:
    """The last message of the user, and how many results of tools follow it."""
    count = 0
    for message in reversed(messages):
        if is_user(message):
            return _texts(message.get("content") or message.get("parts")), count
        count += results(message)
    return "", count


def asked_by_chat(body: Json) -> Asked:
    """What a request of OpenAI's chat completions asks."""
    functions = [each["function"] for each in body.get("tools") or () if "function" in each]
    text, done = _since_user(
        body.get("messages", []), lambda each: each["role"] == "user", lambda each: int(each["role"] == "tool")
    )
    return Asked(text, done, [Tool(each["name"], each.get("parameters") or {}) for each in functions])


def chat_events(given: Reply) -> Iterator[str]:
    """The answer as a stream of chat completions."""
    base = {"id": f"chat{next(_numbers)}", "object": "chat.completion.chunk", "created": 1, "model": "ours"}

    def chunk(delta: Json, reason: str | None = None) -> str:
        return _data({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": f"{word} "}) for word in given.words)
    if given.call:
        name, values = given.call
        function = {"name": name, "arguments": json.dumps(values)}
        yield chunk(
            {"tool_calls": [{"index": 0, "id": f"call{next(_numbers)}", "type": "function", "function": function}]}
        )
    yield chunk({}, "tool_calls" if given.call else "stop")
    yield _data({**base, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    yield "data: [DONE]\n\n"


def asked_by_responses(body: Json) -> Asked:
    """What a request of OpenAI's responses asks."""
    given = body.get("input", [])
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    text, done = _since_user(
        messages, lambda each: each.get("role") == "user", lambda each: int("output" in each.get("type", ""))
    )
    tools = [Tool(each.get("name") or each["type"], each.get("parameters") or {}) for each in body.get("tools") or ()]
    return Asked(text, done, tools)


def responses_events(given: Reply) -> Iterator[str]:
    """The answer as a stream of responses."""
    number = next(_numbers)
    response: Json = {
        "id": f"resp{number}",
        "object": "response",
        "created_at": 1,
        "status": "in_progress",
        "output": [],
    }
    yield _event("response.created", response=response)
    message: Json = {
        "type": "message",
        "id": f"msg{number}",
        "role": "assistant",
        "status": "in_progress",
        "content": [],
    }
    yield _event("response.output_item.added", output_index=0, item=message)
    for word in given.words:
        place = {"item_id": message["id"], "output_index": 0, "content_index": 0}
        yield _event("response.output_text.delta", **place, delta=f"{word} ")
    content = [{"type": "output_text", "text": given.text, "annotations": []}]
    items = [{**message, "status": "completed", "content": content}]
    yield _event("response.output_item.done", output_index=0, item=items[0])
    if given.call:
        name, values = given.call
        call = {"type": "function_call", "id": f"fc{number}", "call_id": f"call{number}", "status": "completed"}
        items.append({**call, "name": name, "arguments": json.dumps(values)})
        yield _event("response.output_item.added", output_index=1, item={**items[1], "arguments": ""})
        yield _event("response.output_item.done", output_index=1, item=items[1])
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = {**response, "status": "completed", "output": items, "usage": {**usage, **details}}
    yield _event("response.completed", response=done)


def asked_by_messages(body: Json) -> Asked:
    """What a request of Anthropic's messages asks."""

    def results(message: Json) -> int:
        parts = message["content"] if isinstance(message["content"], list) else []
        return sum(part.get("type") == "tool_result" for part in parts)

    text, done = _since_user(
        body.get("messages", []), lambda each: each["role"] == "user" and not results(each), results
    )
    return Asked(text, done, [Tool(each["name"], each.get("input_schema") or {}) for each in body.get("tools") or ()])


def messages_events(given: Reply) -> Iterator[str]:
    """The answer as a stream of messages."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    message: Json = {
        "id": f"msg{next(_numbers)}",
        "type": "message",
        "role": "assistant",
        "model": "ours",
        "content": [],
    }
    yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for word in given.words:
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": f"{word} "})
    yield _event("content_block_stop", index=0)
    if given.call:
        name, values = given.call
        block = {"type": "tool_use", "id": f"toolu{next(_numbers)}", "name": name, "input": {}}
        yield _event("content_block_start", index=1, content_block=block)
        yield _event(
            "content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": json.dumps(values)}
        )
        yield _event("content_block_stop", index=1)
    reason = "tool_use" if given.call else "end_turn"
    yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def asked_by_contents(body: Json) -> Asked:
    """What a request of Gemini asks."""
    functions = [each for group in body.get("tools") or () for each in group.get("functionDeclarations", ())]

    def results(message: Json) -> int:
        return sum("functionResponse" in part for part in message.get("parts", ()))

    text, done = _since_user(
        body.get("contents", []), lambda each: each.get("role") == "user" and not results(each), results
    )
    tools = [Tool(each["name"], each.get("parametersJsonSchema") or each.get("parameters") or {}) for each in functions]
    options = body.get("generationConfig") or {}
    schema = options.get("responseJsonSchema") or options.get("responseSchema")
    return Asked(text, done, tools, schema if options.get("responseMimeType") == "application/json" else None)


def contents_events(given: Reply) -> Iterator[str]:
    """The answer as a stream of contents."""
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}

    def chunk(part: Json, **more: str) -> str:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **more}
        return _data({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "ours"})

    yield from (chunk({"text": f"{word} "}) for word in given.words)
    name, values = given.call or ("", {})
    last = {"functionCall": {"name": name, "args": values}} if given.call else {"text": ""}
    yield chunk(last, finishReason="STOP")


def whole(text: str) -> Json:
    """An answer that is no stream, as agents ask for titles: the text in the words of all four interfaces."""
    content = {"role": "model", "parts": [{"text": text}]}
    return {
        "id": f"whole{next(_numbers)}",
        "type": "message",
        "role": "assistant",
        "model": "ours",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "candidates": [{"content": content, "index": 0, "finishReason": "STOP"}],
        "usage": {
            "input_tokens": 10,
            "output_tokens": 5,
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
        },
    }


def _data(value: Json) -> str:
    return f"data: {json.dumps(value)}\n\n"


def _event(kind: str, **values: Any) -> str:
    return f"event: {kind}\n{_data({'type': kind, **values})}"


INTERFACES: Mapping[str, tuple[Callable[[Json], Asked], Callable[[Reply], Iterator[str]]]] = {
    r"/chat/completions$": (asked_by_chat, chat_events),
    r"/responses$": (asked_by_responses, responses_events),
    r"/messages$": (asked_by_messages, messages_events),
    r"[gG]enerateContent$": (asked_by_contents, contents_events),
}
"""The interfaces by the ends of their paths."""


# --- The server -------------------------------------------------------------------------------------------------------


class Server(ThreadingHTTPServer):
    """The model, which remembers what agents have told it."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.heard = set[str]()
        """The words "told-…" of all requests: contents of files, and earlier answers."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: agents that are killed or cancelled close their connections."""


class Handler(BaseHTTPRequestHandler):
    """One request of an agent."""

    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: the output is for the table."""

    def do_GET(self) -> None:
        """Give the list of models."""
        model = {
            "id": "ours",
            "object": "model",
            "created": 1,
            "owned_by": "us",
            "type": "model",
            "display_name": "Ours",
        }
        self._answer({"object": "list", "data": [model], "models": [{"name": "models/ours"}]})

    def do_HEAD(self) -> None:
        """Some agents look first whether there is a server."""
        self.do_GET()

    def do_POST(self) -> None:
        """Answer a prompt by its interface."""
        data, path = self._body() or b"{}", self.path.partition("?")[0]
        body = json.loads(data)
        self.server.heard |= set(re.findall(r"told-\w+", data.decode()))
        for pattern, (read, write) in INTERFACES.items():
            if re.search(pattern, path):
                try:
                    given = reply(read(body))
                except ModelError as error:
                    self._answer({"error": {"message": str(error), "code": error.status}}, error.status)
                    return
                if body.get("stream") is False or path.endswith(":generateContent"):
                    self._answer(whole(given.text))
                else:
                    self._stream(write(given), PIECE_SECONDS if given.is_slow else 0)
                return
        self._answer({"input_tokens": 10, "totalTokens": 10})

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, value: Json, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterable[str], seconds: float) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in events:
                self.wfile.write(event.encode())
                self.wfile.flush()
                time.sleep(seconds)
        except OSError:
            pass  # the agent has ended, or was cancelled


def serve(port: int = 0) -> Server:
    """A server on loopback, which `serve_forever` runs."""
    return Server(port)


if __name__ == "__main__":
    serve(int(sys.argv[1])).serve_forever()
