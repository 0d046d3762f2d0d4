"""The bridge from stdin and stdout to a URL, and a command that is offered on the network: a user's day with both."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.network.proxies import Lines, bridge, serving

SCHEMES = ["ws", "http"]
PAIRS = [
    pytest.param(scheme, kind, marks=() if kind == "hypercorn" else pytest.mark.full)
    for scheme in SCHEMES
    for kind in ("hypercorn", "uvicorn")
]
EXACT = '{"sessionId":"s","a": 1.0,"b":1e400, "c":12345678901234567890123,"d":"\\ud800","e":null,"e":[ 2 ]}'


def one_line(stderr: str) -> str:
    """What a bridge has written, which is one line."""
    name, sign, text = stderr.removesuffix("\n").partition(".bridge: ")
    assert name.startswith("python -m "), stderr
    assert sign
    assert "\n" not in text, stderr
    return text


@pytest.mark.parametrize(("scheme", "kind"), PAIRS)
def test_a_conversation_keeps_its_text(scheme: str, kind: str, tmp_path: Path) -> None:
    with serving(kind, tmp_path) as server, bridge(server.url(scheme)) as client:
        client.write('{"jsonrpc":"2.0","id":"\\u0037","method":"initialize","params":{"protocolVersion":1}}')
        assert client.read() == '{"jsonrpc":"2.0","id":"\\u0037","result":{"protocolVersion":1, "exact": 1.50}}'
        assert client.ask(1, "session/new", {"cwd": "/", "mcpServers": []})["result"] == {"sessionId": "s"}
        client.write(f'{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{EXACT}}}')
        assert client.read() == f'{{"jsonrpc":"2.0","id":2,"result":{EXACT}}}'
        params = {"sessionId": "s", "prompt": [], "_meta": {"count": 300}}
        client.write(json.dumps({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params}))
        updates = [client.read() for _ in range(300)]
        assert updates == [
            f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s", "number": {each}.0}}}}'
            for each in range(300)
        ]
        assert json.loads(client.read())["id"] == 3
        assert client.ended() == (0, "")
        assert server.has_no_agents()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_cannot_be_reached(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with bridge(f"{scheme}://127.0.0.1:{port}/acp") as client:
        error = client.initialize()["error"]
        code, stderr = client.ended()
    why = f"cannot connect to 127.0.0.1:{port}: Connection refused"
    assert (code, one_line(stderr)) == (1, why)
    assert why in error["message"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_wrong_token(scheme: str, tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path, token="right") as server:
        with bridge(server.url(scheme), ACP_TOKEN="a-secret") as client:
            error = client.initialize()["error"]
            code, stderr = client.ended()
        assert server.agents() == 0
    assert code == 1
    assert one_line(stderr).startswith("the server answered 401")
    assert "401" in error["message"]
    assert "a-secret" not in json.dumps(error) + stderr


def given_by_file(folder: Path) -> tuple[list[str], dict[str, str]]:
    (folder / "token").write_text("right\n", encoding="utf-8")
    return ["--token-file", str(folder / "token")], {"ACP_TOKEN": "wrong"}


def given_by_variable(_: Path) -> tuple[list[str], dict[str, str]]:
    return [], {"ACP_TOKEN": "right"}


def given_by_header(_: Path) -> tuple[list[str], dict[str, str]]:
    return ["--header", "authorization: Bearer right", "--header", "X-More: 1"], {"ACP_TOKEN": "wrong"}


@pytest.mark.parametrize("given", [given_by_file, given_by_variable, given_by_header])
@pytest.mark.parametrize("scheme", ["ws", pytest.param("http", marks=pytest.mark.full)])
def test_a_right_token(scheme: str, given: Any, tmp_path: Path) -> None:
    options, env = given(tmp_path)
    with serving("hypercorn", tmp_path, token="right") as server, bridge(server.url(scheme), *options, **env) as client:
        assert "result" in client.initialize()
        assert client.ended() == (0, "")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_ends(scheme: str, tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path) as server, bridge(server.url(scheme)) as client:
        client.initialize()
        client.write('{"jsonrpc":"2.0","id":1,"method":"_wait"}')
        client.ask(2, "_echo", {})  # the first one has arrived
        server.kill()
        error = json.loads(client.read())
        assert (error["id"], error["error"]["code"]) == (1, -32603)
        assert client.ends() == 1
        assert one_line(client.ended()[1])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_agent_that_ends(scheme: str, tmp_path: Path) -> None:
    """Its stderr stays at the server; the client is told that the agent has gone."""
    with serving("hypercorn", tmp_path) as server, bridge(server.url(scheme)) as client:
        client.initialize()
        error = client.ask(1, "_die", {})
        assert (error["id"], error["error"]["code"]) == (1, -32603), error
        assert "a reason to die" not in json.dumps(error)
        assert client.ends() == 1
        assert one_line(client.ended()[1])
        assert server.has_no_agents()
    assert "a reason to die" in server.log.read_text(encoding="utf-8")
    assert "the agent of a proxy has failed" in server.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_command_that_is_not_there(scheme: str, tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path, ["no-such-agent"]) as server, bridge(server.url(scheme)) as client:
        assert client.initialize()["error"]["message"].endswith("cannot be started")  # the log says what
        client.ended()
    assert "no-such-agent" in server.log.read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_client_that_is_killed_leaves_no_agent(scheme: str, tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path) as server:
        with bridge(server.url(scheme)) as client:
            client.initialize()
            assert server.agents() == 1
        assert server.has_no_agents()


@pytest.mark.full
def test_each_connection_has_an_agent_of_its_own(tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path) as server, bridge(server.url("ws")) as one, bridge(server.url("http")) as two:
        assert one.initialize() == two.initialize()
        assert server.agents() == 2
        one.ask(1, "_die", {})
        assert two.ask(1, "_echo", {})["result"] == {}


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_bridge_without_complaint(number: signal.Signals, tmp_path: Path) -> None:
    with serving("hypercorn", tmp_path) as server, bridge(server.url("ws")) as client:
        client.initialize()
        client.send(number)
        assert client.ends() == 0
        assert client.ended() == (0, "")


# --- The command line -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "the following arguments are required: URL"),
        (["ftp://a-secret@host"], "the URL must start with"),
        (["ws://"], "the URL is invalid"),
        (["ws://host", "--header", "a-secret"], "'NAME: VALUE'"),
        (["ws://host", "--header", "X: a-secret\nY: 1"], "'NAME: VALUE'"),
        (["ws://host", "--token-file", "missing"], "missing"),
        (["ws://host", "--token-file", os.devnull], "is empty"),
    ],
)
def test_wrong_arguments(arguments: list[str], complaint: str) -> None:
    with Lines(sys.executable, "-m", "acp_proxy.bridge", *arguments) as process:
        code, stderr = process.ended()
    assert code == 2
    assert complaint in stderr
    assert "a-secret" not in stderr
    assert "Traceback" not in stderr


def test_a_token_without_encryption_is_warned_of() -> None:
    with bridge("ws://agent.example.com/acp", ACP_TOKEN="a-secret") as process:
        code, stderr = process.ended()
    assert code == 0
    assert one_line(stderr) == "warning: the token is sent without encryption: use wss or https"


def test_help_says_where_a_token_comes_from() -> None:
    with Lines(sys.executable, "-m", "acp_proxy.bridge", "--help") as process:
        text = "".join(f"{line}\n" for line in iter(process.read, ""))  # up to the first empty line
        assert "--token-file" in text
        assert process.ended()[0] == 0
