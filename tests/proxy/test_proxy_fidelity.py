"""What is passed on is the text that came: params, results and errors, in the order in which they were sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tests.fidelity.making import Maker
from tests.fidelity.subjects import Subject
from tests.interop import values_v1, values_v2
from tests.proxy.between import OPTIONS, VERSIONS, Stage, between, forwarding, package, prompt, proxy_of, unchanged
from tests.runtime_support import acp_log, run, texts
from tests.support import DEEP, Packages

pytestmark = pytest.mark.every_python

QUICK, FULL = 100, 12_500 if DEEP else 1_000
BATCH = 25
ODD = (
    *("null", "1.0", "1e400", "-1E+400", "12345678901234567890", "0.10", "-0", "1E2", r'"\ud800"', r'"\u0041\/"'),
    *('""', "[ ]", '{"a":1,"a":2}', "[1e400,\t[null]]", '"\u2028é😀"', r'"\n\u0000"', "false"),
)
"""Values whose text is lost where it is read and written again."""
DIGITS = "7" * 5000


# --- Generated traffic -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A method: the definitions of its params and of its result."""

    method: str
    params: str
    result: str | None


@cache
def maker_of(version: int) -> tuple[Maker, dict[str, list[Kind]]]:
    """Makes values of a version; the methods by the side that sends them."""
    subject = Subject(label=f"v{version}", sources=VERSIONS[version][0], options=OPTIONS)
    found: dict[str, dict[str, dict[bool, str]]] = {"client": {}, "agent": {}}
    for name, node in subject.root["$defs"].items():
        sender = {"agent": "client", "client": "agent"}.get(node.get("x-side", ""))
        if sender is not None:
            found[sender].setdefault(node["x-method"], {})[name.endswith("Response")] = name
    kinds = {
        side: [Kind(method, parts[False], parts.get(True)) for method, parts in each.items()]
        for side, each in found.items()
    }
    return subject.maker, kinds


@dataclass
class Writer:
    """Writes messages of one side, in as many ways as JSON allows. With `valid`, the types of the version fit them."""

    version: int
    side: str
    random: Random
    valid: bool = False
    number: int = 0
    known: dict[str, Kind] = field(default_factory=dict)
    """The requests that wait for a response, by the text of their ids."""

    def blank(self) -> str:
        return self.random.choice(("", "", "", " ", "\t", "\n", "\r\n  "))

    def spelled(self, value: Any) -> str:
        """The text of a value, with blanks and escapes."""
        if isinstance(value, dict):
            return self.object([(name, self.spelled(each)) for name, each in value.items()])
        if isinstance(value, list):
            return f"[{self.blank()}{(self.blank() + ',').join(map(self.spelled, value))}]"
        return json.dumps(value, ensure_ascii=self.random.random() < 0.5)

    def object(self, members: list[tuple[str, str]]) -> str:
        parts = (f"{self.blank()}{json.dumps(name)}{self.blank()}:{self.blank()}{text}" for name, text in members)
        return "{" + ",".join(parts) + self.blank() + "}"

    def odd(self) -> str:
        return DIGITS if self.random.random() < 0.003 else self.random.choice(ODD)

    def value(self, definition: str | None) -> str:
        """The text of params or a result, with unknown properties; if none is known, anything."""
        random = self.random
        if definition is None or (not self.valid and random.random() < 0.1):
            return self.odd()
        value = maker_of(self.version)[0].value(definition, random)
        if self.valid and "protocolVersion" in value:
            value["protocolVersion"] = self.version
        members = [(name, self.spelled(each)) for name, each in value.items()]
        extra = [(f"x{random.randrange(3)}!", self.odd()) for _ in range(random.randrange(3))]
        if extra and not self.valid and members:
            extra.append((members[0][0], self.odd()))  # twice
        return self.object([*extra, *members])

    def message(self, members: list[tuple[str, str]], identity: str | None) -> Sent:
        """The text of a message with these members; the id stands anywhere among them."""
        members = [("jsonrpc", '"2.0"'), *members]
        if self.random.random() < 0.2:
            members.append(("beside", self.odd()))
        if identity is not None:
            members.append(("id", "\0"))
        self.random.shuffle(members)
        text = self.object(members)
        before, _, after = text.partition("\0")
        return Sent(before, after if identity is not None else "", identity)

    def call(self) -> Sent:
        """A request or a notification."""
        random = self.random
        kinds = [each for each in maker_of(self.version)[1][self.side] if not each.method.startswith("$/")]
        kind = random.choice([*kinds, Kind("_own/é\u2028", "", ""), Kind("not/known", "", None)])
        members = [("method", self.spelled(kind.method))]
        if kind.params or random.random() < 0.7:
            members.append(("params", self.value(kind.params or None)))
        if kind.result is None:
            return self.message(members, None)
        identity = self.identity()
        self.known[identity] = kind
        return self.message(members, identity)

    def identity(self) -> str:
        """The text of an id: the same number also as a text."""
        self.number += 1
        spellings = (f"{self.number}", f'"{self.number}"', f'"\\u0069{self.number}"', f"-{self.number}", f"{2**63}")
        found = self.random.choice(spellings)
        return f'"{self.number} "' if found in self.known else found

    def answer(self, kind: Kind, there: str) -> Sent:
        """The response to a request, whose id here is `there`."""
        if self.random.random() < 0.3:
            code = self.random.choice(("-32000", "-32603", "12345"))
            error = [("code", code), ("message", self.spelled("no\n")), ("more", self.odd()), ("data", self.odd())]
            return self.message([("error", self.object(error))], there)
        return self.message([("result", self.value(kind.result or None))], there)


@dataclass(frozen=True)
class Sent:
    """A message as it was written: `identity` stands between the two texts."""

    before: str
    after: str
    identity: str | None

    @property
    def text(self) -> str:
        return f"{self.before}{self.identity or ''}{self.after}"

    def arrived(self, text: str, identity: str | None = None) -> str:
        """Fail unless `text` is this message; returns the id that it has there: `identity`, or a new one."""
        before, after = (part.replace("\n", " ").replace("\r", " ") for part in (self.before, self.after))
        assert text.startswith(before)
        assert text.endswith(after)
        found = text[len(before) : len(text) - len(after)] if self.identity is not None else ""
        assert found == (identity or found)
        return found


@dataclass
class Player:
    """One neighbour: what it has sent, and what it has to answer."""

    end: Any
    writer: Writer
    due: list[tuple[Kind, str, str]] = field(default_factory=list)
    """Requests that it has got: what they are, their ids here, and those where they came from."""

    async def send(self) -> list[tuple[Sent, str | None]]:
        """Send some messages; returns them, responses with the id that they must have at the other side."""
        random = self.writer.random
        chosen: list[tuple[Sent, str | None]] = [(self.writer.call(), None) for _ in range(BATCH)]
        random.shuffle(self.due)
        answered, self.due = self.due[: BATCH * 2], self.due[BATCH * 2 :]
        for kind, here, there in answered:
            chosen.insert(random.randrange(len(chosen)), (self.writer.answer(kind, here), there))
        for sent, _ in chosen:
            await self.end.send(sent.text.encode())
        return chosen

    async def receive(self, expected: list[tuple[Sent, str | None]], other: Writer) -> None:
        """Read what the other side has sent, in its order."""
        for sent, identity in expected:
            here = sent.arrived(await self.end.read(), identity)
            if identity is not None:
                del self.writer.known[identity]
            elif sent.identity is not None:
                assert int(here) >= 0
                self.due.append((other.known[sent.identity], here, sent.identity))


async def play(stage: Stage, version: int, *, seed: int, count: int, valid: bool = False) -> int:
    """Let both sides send `count` messages at least, and compare; returns how many there were."""
    players = [
        Player(end, Writer(version, side, Random(f"{side} {seed}"), valid))
        for end, side in ((stage.client, "client"), (stage.agent, "agent"))
    ]
    client, agent = players
    total = 0
    while total < count:
        down, up = await client.send(), await agent.send()
        await agent.receive(down, client.writer)
        await client.receive(up, agent.writer)
        total += len(down) + len(up)
    return total


# --- Tests -----------------------------------------------------------------------------------------------------------


def no_proxy(acp: ModuleType) -> list[Any]:
    return []


def plain(acp: ModuleType) -> list[Any]:
    return [acp.Proxy]


def three(acp: ModuleType) -> list[Any]:
    return [acp.Proxy, acp.Proxy, acp.Proxy]


def forwarded(acp: ModuleType) -> list[Any]:
    return [forwarding(acp)]


def forwarded_twice(acp: ModuleType) -> list[Any]:
    return [forwarding(acp), acp.Proxy, forwarding(acp)]


def typed(acp: ModuleType) -> list[Any]:
    return [unchanged(acp)]


def typed_and_forwarded(acp: ModuleType) -> list[Any]:
    return [unchanged(acp), forwarding(acp), unchanged(acp)]


CHAINS: list[Callable[[ModuleType], list[Any]]] = [no_proxy, plain, three, forwarded, forwarded_twice]
TYPED: list[Callable[[ModuleType], list[Any]]] = [typed, typed_and_forwarded]


def cases() -> Iterator[Any]:
    for chain in (*CHAINS, *TYPED):
        for version in (1, 2):
            few = QUICK if chain in (plain, forwarded, typed) or version == 1 else 0
            for count in filter(None, (few, FULL)):
                is_chosen = chain in (forwarded_twice, typed_and_forwarded)  # the others are parts of them
                marks = [] if count != FULL else [pytest.mark.full] if is_chosen else [pytest.mark.deep]
                yield pytest.param(chain, version, count, id=f"{chain.__name__}-v{version}-{count}", marks=marks)


@pytest.mark.parametrize(("chain", "version", "count"), [*cases()])
def test_the_text_stays(packages: Packages, chain: Any, version: int, count: int) -> None:
    acp = package(packages, version)

    async def main() -> None:
        async with between(acp, chain(acp), max_messages=1000) as stage:
            assert await play(stage, version, seed=1, count=count, valid=chain in TYPED) >= count

    with acp_log() as records:
        if count == FULL:
            asyncio.run(main())  # without the checks of a strict loop, which take most of the time
        else:
            run(main())
    assert texts(records) == ""


SPELLINGS: dict[str, dict[str, Any]] = {
    "as most libraries": {"ensure_ascii": False, "separators": (",", ":")},
    "as Python": {},
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("chain", [no_proxy, plain, three, typed])
def test_what_the_official_sdks_say(packages: Packages, chain: Any, version: int, spelling: dict[str, Any]) -> None:
    """The messages of all flows that are played with them, of each side: the text stays."""
    acp = package(packages, version)
    flows = {1: values_v1, 2: values_v2}[version]
    colon = json.dumps({"": 0}, **spelling)[3:-2]

    async def main() -> None:
        async with between(acp, chain(acp)) as stage:
            for number, each in enumerate([flows.INITIALIZE, *flows.EXCHANGES]):
                ends = [stage.client, stage.agent]
                caller, callee = ends if each.caller == "client" else reversed(ends)
                call = {"method": each.method, "params": each.params}
                if each.result is None:
                    sent = json.dumps({"jsonrpc": "2.0", **call}, **spelling)
                    await caller.send(sent)
                    assert await callee.read() == sent
                    continue
                sent = json.dumps({"jsonrpc": "2.0", "id": f"{number}", **call}, **spelling)
                await caller.send(sent)
                arrived = await callee.read() or ""
                here, there = f'"id"{colon}"{number}"', f'"id"{colon}{json.loads(arrived)["id"]}'
                assert arrived == sent.replace(here, there)
                answer = json.dumps({"jsonrpc": "2.0", "id": "", "result": each.result}, **spelling)
                await callee.send(answer.replace(f'"id"{colon}""', there))
                assert await caller.read() == answer.replace(f'"id"{colon}""', here)

    with acp_log() as records:
        run(main())
    assert texts(records) == ""


@pytest.mark.parametrize(
    "chain", [typed, *(pytest.param(each, marks=pytest.mark.full) for each in (no_proxy, three, forwarded_twice))]
)
def test_eight_megabytes(acp: ModuleType, chain: Any) -> None:
    text = json.dumps("é\n" * 2**21, ensure_ascii=False)
    params = f'{{"sessionId":"s","prompt":[],"x":[{text},1.0]}}'
    assert len(params.encode()) > 8 * 2**20

    async def main() -> None:
        async with between(acp, chain(acp)) as stage:
            await stage.client.send(f'{{"jsonrpc":"2.0","id":"a","method":"session/prompt","params":{params}}}')
            line = await stage.agent.read()
            assert line == f'{{"jsonrpc":"2.0","id":0,"method":"session/prompt","params":{params}}}'
            result = params.replace('"sessionId":"s"', '"stopReason":"end_turn"')
            await stage.agent.send(f'{{"jsonrpc":"2.0","id":0,"result":{result}}}')
            assert await stage.client.read() == f'{{"jsonrpc":"2.0","id":"a","result":{result}}}'

    run(main())


CHANGED: Sequence[tuple[str, str]] = (
    ("1e400", "1e999"),
    ("-1e400", "-1e999"),
    ("1.0", "1.0"),
    ("12345678901234567890123", "12345678901234567890123"),
    (DIGITS, "1e999"),
    (r'"\ud800"', r'"\ud800"'),
    ("null", "null"),
    ('{"a":{"b":[1.50]}}', '{"a":{"b":[1.5]}}'),
)


@pytest.mark.parametrize(("raw", "kept"), CHANGED, ids=range(len(CHANGED)))
def test_one_changed_property_keeps_the_unknown_ones(acp: ModuleType, raw: str, kept: str) -> None:
    async def session_prompt(self: Any, params: Any) -> Any:
        params.session_id = "mine"
        result = await self.agent.session_prompt(params)
        result.stop_reason = "refusal"
        return result

    async def main() -> None:
        async with between(acp, [proxy_of(acp, session_prompt=session_prompt)]) as stage:
            inner = f'{{"type":"text","text":"t","own":{raw}}}'
            text = f'{{"sessionId":"s","prompt":[{inner}],"beside":{raw},"_meta":{{"m":{raw}}}}}'
            await stage.client.send(f'{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{text}}}')
            line = await stage.agent.read()
            assert line is not None
            expected = text.replace(raw, kept).replace('"sessionId":"s"', '"sessionId":"mine"')
            assert json.loads(line, parse_float=str)["params"] == json.loads(expected, parse_float=str)
            await stage.agent.send(
                f'{{"jsonrpc":"2.0","id":0,"result":{{"stopReason":"end_turn","beside":{raw},"_meta":null}}}}'
            )
            line = await stage.client.read()
            assert line is not None
            expected = f'{{"stopReason":"refusal","beside":{kept},"_meta":null}}'
            assert json.loads(line, parse_float=str)["result"] == json.loads(expected, parse_float=str)

    run(main())


@pytest.mark.parametrize("kind", ["typed", "forwarding"])
def test_the_result_of_the_stub_after_other_calls(acp: ModuleType, kind: str) -> None:
    """It is the text that came, although the handler has made other calls since."""
    text = '{"stopReason":"end_turn","x":1e400,"x":1.0}'

    async def session_prompt(self: Any, params: Any) -> Any:
        result = await self.agent.session_prompt(params)
        await self.agent.ext_method("_count", {})
        return result

    async def from_client(self: Any, call: Any) -> Any:
        result = await call.forward()
        await self.agent.ext_method("_count", {})
        return result

    kinds = {
        "typed": proxy_of(acp, session_prompt=session_prompt),
        "forwarding": proxy_of(acp, from_client=from_client),
    }

    async def main() -> None:
        async with between(acp, [kinds[kind]]) as stage:
            number, request = await stage.asked()
            await stage.agent.send(f'{{"jsonrpc":"2.0","id":{request["id"]},"result":{text}}}')
            await stage.agent.answer(await stage.agent.receive())
            assert await stage.client.read() == f'{{"jsonrpc":"2.0","id":"{number}","result":{text}}}'

    run(main())


def test_forwarding_with_other_params(acp: ModuleType) -> None:
    async def from_client(self: Any, call: Any) -> Any:
        result = await call.forward({**call.params, "more": 1})
        return {**result, "less": call.params}

    async def main() -> None:
        async with between(acp, [proxy_of(acp, from_client=from_client)]) as stage:
            _, request = await stage.asked("_x", {"a": [None]})
            assert request["params"] == {"a": [None], "more": 1}
            await stage.agent.answer(request, result={"b": 1})
            assert (await stage.client.receive())["result"] == {"b": 1, "less": {"a": [None]}}

    run(main())


def test_params_that_a_handler_changes_in_place_are_passed_on_as_they_came(acp: ModuleType) -> None:
    """The next proxy of the chain reads what is passed on, not what the one before has made of it."""
    seen: list[Any] = []

    async def spoil(self: Any, call: Any) -> Any:
        call.params.clear()
        return await call.forward()

    async def look(self: Any, call: Any) -> Any:
        seen.append(call.params)
        return await call.forward()

    async def main() -> None:
        chain = [proxy_of(acp, from_client=spoil), proxy_of(acp, from_client=look)]
        async with between(acp, chain) as stage:
            _, request = await stage.asked("_x", {"a": 1})
            assert request["params"] == seen[0] == {"a": 1}

    run(main())


@pytest.mark.parametrize("chain", [plain, three, forwarded])
def test_what_is_no_message_is_not_passed_on(acp: ModuleType, chain: Any) -> None:
    bad = [
        "{",
        '{"jsonrpc":"2.0","id":1.5,"method":"a"}',
        "[]",
        '{"jsonrpc":"2.0","id":1,"method":2}',
        "NaN",
        '{"a":1,}',
    ]

    async def main() -> None:
        async with between(acp, chain(acp)) as stage:
            for line in bad:
                await stage.client.send(line)
                error = (await stage.client.receive())["error"]
                assert error["code"] in (-32700, -32600), line
            await stage.client.send(b'{"jsonrpc":"2.0","method":"a\xff"}')
            assert (await stage.client.receive())["error"]["code"] == -32700
            await stage.barrier()

    run(main())


def test_a_value_of_a_handler_that_is_no_json(acp: ModuleType) -> None:
    """It fails that request, and not the connection: also before the next proxy of the chain."""

    async def from_client(self: Any, call: Any) -> Any:
        return await call.forward({"bad": object()}) if call.method == "_bad" else await call.forward()

    for chain in ([proxy_of(acp, from_client=from_client)], [proxy_of(acp, from_client=from_client), acp.Proxy]):

        async def main(chain: list[Any] = chain) -> None:
            async with between(acp, chain) as stage:
                number = await stage.client.request("_bad", {})
                found = await stage.client.receive()
                assert (found["id"], found["error"]["code"]) == (number, -32603)
                await stage.barrier()

        run(main())


def test_a_prompt_from_one_who_writes_as_editors_do(acp: ModuleType) -> None:
    """The ids `7` and `"7"`, at once, and with escapes: case 40."""

    async def main() -> None:
        async with between(acp, [acp.Proxy, unchanged(acp)]) as stage:
            for identity in ("7", '"7"', '"\\u0038"', "null"):
                line = {"method": "session/prompt", "params": prompt(identity)}
                text = json.dumps({"jsonrpc": "2.0", **line})[:-1]
                await stage.client.send(f'{text},"id":{identity}}}')
            requests = [await stage.agent.receive() for _ in range(4)]
            for request in reversed(requests):
                await stage.agent.answer(request, result={"stopReason": request["params"]["prompt"][0]["text"]})
            for identity in ("null", '"\\u0038"', '"7"', "7"):
                line = await stage.client.read()
                assert line is not None
                assert f'"id":{identity}' in line.replace(": ", ":")
                assert json.loads(line)["result"]["stopReason"] == identity

    run(main())
