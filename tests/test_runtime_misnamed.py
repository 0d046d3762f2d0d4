"""Methods of a handler class that look like handlers, and that no message reaches."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import EVERY_BASE, V1, V2, acp_log, agent_of, client_of, raw_peer, run, texts, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python


async def handler(self: Any, params: Any) -> None:
    """Any."""


async def of_several(self: Any, prompt: Any, session_id: str, **more: Any) -> None:
    """As the official SDK for Python passes params."""


async def without_params(self: Any) -> None:
    """No message could call it."""


def plain(self: Any, params: Any) -> None:
    """Not a coroutine."""


def warnings(acp: Any, kind: type[Any]) -> str:
    async def main() -> None:
        async with raw_peer(acp, kind, options=unchecked(acp)) as peer:
            await peer.ping()

    with acp_log() as records:
        run(main())
    return texts(records)


AGENT = {
    "prompt": "session_prompt",
    "new_session": "session_new",
    "newSession": "session_new",
    "load_session": "session_load",
    "list_sessions": "session_list",
    "set_session_mode": "session_set_mode",
    "cancel": "session_cancel",
    "session_promt": "session_prompt",
    "session_prmopt": "session_prompt",
    "session_prompts": "session_prompt",
    "initialise": "initialize",
}
CLIENT = {
    "read_text_file": "fs_read_text_file",
    "request_permission": "session_request_permission",
    "create_terminal": "terminal_create",
    "wait_for_terminal_exit": "terminal_wait_for_exit",
    "sessionUpdate": "session_update",
}


@pytest.mark.parametrize("method", [handler, of_several])
@pytest.mark.parametrize(("name", "meant"), [*AGENT.items(), *CLIENT.items()])
def test_a_method_that_looks_like_a_handler(packages: Packages, name: str, meant: str, method: Any) -> None:
    acp = packages(V1)
    kind = (agent_of if name in AGENT else client_of)(acp, **{name: method})
    kind = type("Inheriting", (kind,), {})
    found = warnings(acp, kind)
    assert f"Inheriting.{name} " in found
    assert meant in found
    assert found.count("WARNING") == 1


@EVERY_BASE
def test_classes_without_such_methods(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    class Mixin:
        async def turn(self, params: Any) -> None:
            """A helper."""

    class Good(acp.Agent, Mixin):  # type: ignore[misc]
        session_prompt = session_cancel = session_new = initialize = handler
        session_update = handler  # as that of the client, whose stub it may call
        cancel = prompt = handler  # helpers of the above
        new = close = without_params
        load_session = plain
        _load_session = handler
        stream = answer = open_file = handler
        ext_method = ext_notification = connection_closed = handler

    async def ext_method(self: Any, method: str, params: Any) -> None:
        """Answer pings."""

    Good.ext_method = ext_method
    Good.connection_closed = handler
    assert warnings(acp, Good) == ""


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_handlers_do_not_look_like_each_other(packages: Packages, sources: SchemaChoice) -> None:
    """Each alone is overridden, and no other one is meant."""
    acp = packages(sources)

    async def main() -> list[str]:
        seen = []
        for base in (acp.Agent, acp.Client):
            for route in (*base.REQUESTS.values(), *base.NOTIFICATIONS.values()):
                async with raw_peer(acp, type("One", (base,), {route.handler: handler})):
                    seen.append(route.handler)
            async with raw_peer(acp, type("Wrong", (base,), {f"{seen[-1]}s": handler})):  # there would be a warning
                pass
        return seen

    with acp_log() as records:
        seen = run(main())
    assert len(seen) > 10
    assert "One." not in texts(records)
    assert texts(records).count("Wrong.") == 2


# --- What users ask and call ----------------------------------------------------------------------------------------

ASKED = {
    "fs": "fs/read_text_file or fs/write_text_file",
    "readTextFile": "fs/read_text_file",
    "read_text_file": "fs/read_text_file",
    "fs/read_text_fil": "fs/read_text_file",
    "fs/readTextFile": "fs/read_text_file",
    "request_permission": "session/request_permission",
    "session/prompt": "expected ",  # the agent has it, and not its client
    "nonsense": "expected ",
    "": "expected ",
}


@pytest.mark.parametrize("name", ASKED)
def test_supports_refuses_a_name_that_nothing_has(packages: Packages, name: str) -> None:
    acp = packages(V1)
    reading = {"clientCapabilities": {"fs": {"readTextFile": True}}, "protocolVersion": 1}

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, initialize=initialize)) as peer:
            await peer.ask(1, "initialize", reading)
            assert peer.stub.supports("fs/read_text_file")
            assert peer.stub.supports("fs_read_text_file")
            assert peer.connection.supports("fs_read_text_file")
            assert not peer.stub.supports("fs_write_text_file")
            assert peer.stub.supports("_acme/undo")  # it is not refused
            for side in (peer.stub, peer.connection):
                with pytest.raises(ValueError, match=r"test_runtime_misnamed\.py") as caught:
                    side.supports(name)
                assert ASKED[name] in str(caught.value)

    run(main())


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_supports_without_a_connection_knows_the_names_too(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)
    for stub in (acp.RemoteClient(None), acp.RemoteAgent(None)):
        for method in stub.METHODS.values():
            assert stub.supports(method.name)
            assert stub.supports(method.handler)
        for wrong in (None, 1, stub, [], acp.UNSET, type(stub).ext_method):
            with pytest.raises(TypeError, match="expected the name of a method of Remote"):
                stub.supports(wrong)
        with pytest.raises(ValueError, match="no such method"):
            stub.supports("nonsense")


def test_what_only_another_version_has_is_not_supported(packages: Packages) -> None:
    acp = packages(V1, V2)
    assert not acp.v2.RemoteAgent(None).supports("session/load")
    assert acp.v1.RemoteAgent(None).supports("session/load")
    with pytest.raises(ValueError, match="no such method"):
        acp.v2.RemoteAgent(None).supports("session/lod")


OF_THE_SDK = {
    "RemoteClient": {
        "request_permission": "session_request_permission(RequestPermissionRequest(...))",
        "requestPermission": "session_request_permission(",
        "sessionUpdate": "session_update(SessionNotification(...))",
        "read_text_file": "fs_read_text_file(",
        "writeTextFile": "fs_write_text_file(",
        "create_terminal": "terminal_create(",
        "wait_for_terminal_exit": "terminal_wait_for_exit(",
        "kill_terminal": "terminal_kill(",
        "release_terminal": "terminal_release(",
        "create_elicitation": "elicitation_create(",
    },
    "RemoteAgent": {
        "prompt": "session_prompt(PromptRequest(...))",
        "new_session": "session_new(",
        "newSession": "session_new(",
        "load_session": "session_load(",
        "list_sessions": "session_list(",
        "set_session_mode": "session_set_mode(",
        "setSessionMode": "session_set_mode(",
        "set_config_option": "session_set_config_option(",
        "resume_session": "session_resume(",
        "close_session": "session_close(",
        "cancel": "session_cancel(",
    },
}


@pytest.mark.parametrize("stub", OF_THE_SDK)
def test_names_of_the_official_sdk_on_a_stub(packages: Packages, stub: str) -> None:
    acp = packages(V1)
    for name, meant in OF_THE_SDK[stub].items():
        with pytest.raises(AttributeError, match=r"test_runtime_misnamed\.py") as caught:
            getattr(getattr(acp, stub)(None), name)
        assert meant in str(caught.value), name
        assert f"'{stub}' object has no attribute '{name}'" in str(caught.value)


RAW_CALLS = {
    "request": "ext_method(method, params)",
    "sendRequest": "ext_method(method, params)",
    "call": "ext_method(method, params)",
    "extMethod": "ext_method(method, params)",
    "notify": "ext_notification(method, params)",
    "send_notification": "ext_notification(method, params)",
    "notification": "ext_notification(method, params)",
    "extNotification": "ext_notification(method, params)",
}


@pytest.mark.parametrize("name", RAW_CALLS)
def test_a_call_by_its_name_on_the_wire(packages: Packages, name: str) -> None:
    """As other libraries have it: no method of the protocol is meant."""
    acp = packages(V1)
    for stub in (acp.RemoteAgent, acp.RemoteClient):
        with pytest.raises(AttributeError) as caught:
            getattr(stub(None), name)
        assert str(caught.value).endswith(f", but it has {RAW_CALLS[name]}")


@pytest.mark.parametrize("kind", ["Agent", "Client"])
def test_the_sort_of_a_message_is_no_handler(packages: Packages, kind: str) -> None:
    acp = packages(V1)
    assert warnings(acp, type("Mine", (getattr(acp, kind),), {"request": handler, "notification": handler})) == ""


def test_a_stub_has_no_other_attributes(packages: Packages) -> None:
    stub = packages(V1).RemoteAgent(None)
    assert not hasattr(stub, "nonsense")
    assert not hasattr(stub, "_private")
    assert not hasattr(stub, "negotiated")
    assert copy.deepcopy(stub).METHODS is stub.METHODS
    assert pickle.loads(pickle.dumps(stub)).METHODS is stub.METHODS
