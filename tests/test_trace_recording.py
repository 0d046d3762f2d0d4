"""`acpgen trace --out FILE -- COMMAND`: it stands in the place of the command, and records what passes."""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support import deep_except

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

Json = Any
SECONDS = 120
COPY = """
import os
while data := os.read(0, 65536):
    while data:
        data = data[os.write(1, data):]
"""


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def command_line(out: Path, command: Sequence[str], *options: str) -> list[str]:
    return [sys.executable, "-m", "acpgen", "trace", "--out", str(out), *options, "--", *command]


def run_command(command: Sequence[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, **more)


def run(out: Path, code: str, sent: bytes = b"", *options: str) -> subprocess.CompletedProcess[bytes]:
    """Run Python code as the command, with `sent` on its stdin."""
    return run_command(command_line(out, python(code), *options), input=sent)


@contextmanager
def started(out: Path, code: str, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Code as the command, once it has said "ready"."""
    command = command_line(out, python(code))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield process
        finally:
            process.kill()


def lines(out: Path) -> list[Json]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def recorded(out: Path, sender: str) -> list[Json]:
    return [line for line in lines(out) if line.get("from") == sender and "size" in line]


def pour_into(descriptor: int) -> None:
    while True:
        os.write(descriptor, b"x" * 4096)


def text(*messages: Json) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def wait_for_end(pid: int) -> None:
    """Wait until no process has this id."""
    for _ in range(SECONDS * 50):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        time.sleep(0.02)
    pytest.fail(f"process {pid} is still there")


# --- What passes -----------------------------------------------------------------------------------------------------

MESSAGES = [
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}},
    {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/é", "mcpServers": []}},
]
ODD = {
    "nothing": b"",
    "blank lines": b"\n\n \n",
    "binary": bytes(range(256)) * 40,  # which has line ends of both kinds, and ends in the middle of a line
    "half a line": b'{"jsonrpc": "2.0"',
    "line ends of Windows": text(*MESSAGES).replace(b"\n", b"\r\n"),
    "a line longer than a pipe": b"x" * 300_000,
    "many empty lines": b"\n" * 200_000,
    "nested deeply": b"[" * 100_000 + b"\n" + b'{"a":' * 50_000 + b"\n",
    "other encodings": b"\xef\xbb\xbf{}\n\xff\xfe{\0}\0\n",
    "values that are no messages": b"1" * 5_000 + b'\nNaN\n{"a":NaN}\n"text"\n[1,2]\n',
}


# bytes pass without being read as messages: what matters is how many there are, and that a failure to read loses none
@pytest.mark.parametrize("sent", deep_except({"nothing", "binary", "a line longer than a pipe", "nested deeply"}, ODD))
def test_all_bytes_pass_in_both_directions(tmp_path: Path, sent: bytes) -> None:
    code = """
import sys
open('got', 'wb').write(sys.stdin.buffer.read())
sys.stdout.buffer.write(open('given', 'rb').read())
"""
    (tmp_path / "given").write_bytes(sent[::-1])
    command = command_line(tmp_path / "out", python(f"import os\nos.chdir({str(tmp_path)!r})\n{code}"))
    ran = run_command(command, input=sent)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, sent[::-1], b"")
    assert (tmp_path / "got").read_bytes() == sent
    assert lines(tmp_path / "out")[-1]["end"] == 0


# each form of a line: `raw64`, `msg` without its line end, `raw` in pieces, `raw` as JSON fails, other values
RECORDED = {
    "binary",
    "line ends of Windows",
    "a line longer than a pipe",
    "nested deeply",
    "values that are no messages",
}


@pytest.mark.parametrize("sent", deep_except(RECORDED, ODD))
def test_each_line_is_recorded(tmp_path: Path, sent: bytes) -> None:
    run(tmp_path / "out", COPY, sent)
    expected = [line for line in sent.split(b"\n") if line.strip()]
    for sender in ("client", "agent"):
        found = recorded(tmp_path / "out", sender)
        assert [line["size"] for line in found] == list(map(len, expected))
        for line, original in zip(found, expected, strict=True):
            if "msg" in line:
                assert json.dumps(line["msg"]) == json.dumps(json.loads(original))
            elif "raw" in line:
                assert line["raw"].encode() == original
            else:
                assert base64.b64decode(line["raw64"]) == original


def test_a_line_says_when_and_who(tmp_path: Path) -> None:
    run(tmp_path / "out", COPY, text(*MESSAGES))
    head, *found, end = lines(tmp_path / "out")
    assert head["acp_trace"] == 1
    assert head["command"] == [sys.executable]  # arguments may be secrets
    assert {line["connection"] for line in [*found, end]} == {head["connection"]}
    assert [(line["from"], line["to"]) for line in found] == [("client", "agent")] * 2 + [("agent", "client")] * 2
    assert [line["msg"] for line in found] == MESSAGES * 2
    times = [line["t"] for line in [*found, end]]
    assert times == sorted(times)


def test_an_answer_comes_after_its_request(tmp_path: Path) -> None:
    """The time of a line is when it was read, and a peer cannot answer what it has not got."""
    code = "import sys\nprint('ready', flush=True)\nfor line in sys.stdin:\n    print(line, end='', flush=True)"
    with started(tmp_path / "out", code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(500):
            process.stdin.write(text({"id": number}))
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert process.wait(SECONDS) == 0
    senders = [line["from"] for line in lines(tmp_path / "out")[2:-1]]
    assert senders == ["client", "agent"] * 500


def test_bytes_pass_before_their_line_ends(tmp_path: Path) -> None:
    with started(tmp_path / "out", "print('ready', flush=True)\n" + COPY) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part in (b'{"jsonrpc"', b':"2.0"', b"}"):
            process.stdin.write(part)
            process.stdin.flush()
            assert process.stdout.read(len(part)) == part
        process.stdin.close()
        assert process.wait(SECONDS) == 0
    assert [line.get("msg") for line in recorded(tmp_path / "out", "agent")] == [None, {"jsonrpc": "2.0"}]


def test_what_is_recorded_can_be_checked(tmp_path: Path) -> None:
    answers = [
        {"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": 5}},
    ]
    code = f"""
import sys
for answer in {[json.dumps(each) for each in answers]!r}:
    sys.stdin.readline()
    print(answer, flush=True)
"""
    request = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}}
    out = tmp_path / "out"
    assert run(out, code, text(MESSAGES[0], request)).returncode == 0
    check = [sys.executable, "-m", "acpgen", "trace", str(out), "--format", "json"]
    found = json.loads(run_command(check).stderr)
    assert [(each["line"], each["code"], each["pointer"]) for each in found] == [
        (5, "wrong-value", "/result/sessionId")
    ]


def test_stderr_and_open_descriptors_are_those_of_the_command(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    code = f"import os\nos.write(2, bytes(range(256)))\nos.write({writing}, b'there')"
    ran = run_command(command_line(tmp_path / "out", python(code)), pass_fds=[writing])
    os.close(writing)
    assert (ran.stderr, os.read(reading, 100)) == (bytes(range(256)), b"there")
    os.close(reading)


# --- Much ------------------------------------------------------------------------------------------------------------


def pour(seed: int, size: int) -> Iterator[bytes]:
    """Arbitrary bytes, the same for each seed, in which lines are short, long, and longer than what is recorded."""
    source, left = random.Random(seed), size
    while left:
        chunk = source.randbytes(min(left, 2**16))
        if source.random() < 0.5:
            chunk = chunk.replace(b"\n", b"-")
        left -= len(chunk)
        yield chunk


POUR = """
import os, sys, threading
sys.path.insert(0, {repository!r})
from tests.test_trace_recording import pour
def put():
    for chunk in pour(2, {size}):
        while chunk:
            chunk = chunk[os.write(1, chunk):]
    os.close(1)
writer = threading.Thread(target=put)
writer.start()
for chunk in pour(1, {size}):
    while chunk:
        got = os.read(0, len(chunk))
        assert got and chunk.startswith(got)
        chunk = chunk[len(got):]
assert os.read(0, 1) == b""
writer.join()
"""


MEASURED = """
import resource, subprocess, sys
process = subprocess.run(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(process.returncode)
"""
"""Says what the command took at most. It is small, for a new process counts the memory of its starter as its own."""


@pytest.mark.parametrize(
    "mib",
    [
        2,
        pytest.param(20, marks=pytest.mark.full),
        pytest.param(200, marks=[pytest.mark.full, pytest.mark.deep]),
    ],
)
def test_a_flood_in_both_directions(tmp_path: Path, mib: int) -> None:
    """All bytes are equal; memory and the files stay bounded."""
    out = tmp_path / "out"
    repository = str(Path(__file__).resolve().parent.parent)
    code = POUR.format(repository=repository, size=mib * 2**20)
    command = python(MEASURED, str(tmp_path / "kib"), *command_line(out, python(code), "--max-mib", "8"))
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=repository)
    assert process.stdin is not None
    assert process.stdout is not None

    def write() -> None:
        assert process.stdin is not None
        with process.stdin:
            for chunk in pour(1, mib * 2**20):
                process.stdin.write(chunk)

    writer = Thread(target=write)
    writer.start()
    for expected in pour(2, mib * 2**20):
        assert process.stdout.read(len(expected)) == expected
    assert process.stdout.read() == b""
    writer.join()
    process.stdout.close()
    assert process.wait(SECONDS) == 0
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 8 * 2**20 + 2 * 32 * 2**20
    kib = int((tmp_path / "kib").read_text(encoding="utf-8")) // (1024 if sys.platform == "darwin" else 1)
    assert kib < 300 * 1024, "of acpgen and the command, the one that took more"


def test_of_much_at_once_every_line_is_recorded(tmp_path: Path) -> None:
    count, line = 5_000, text({"jsonrpc": "2.0", "method": "m", "params": {"text": "x" * 50}})
    ran = run(tmp_path / "out", COPY, line * count)
    assert (ran.stdout == line * count, ran.stderr) == (True, b"")
    found = [(each["from"], each["size"]) for each in lines(tmp_path / "out") if "size" in each]
    assert sorted(found) == [("agent", len(line) - 1)] * count + [("client", len(line) - 1)] * count


def test_of_a_longer_line_the_start_is_recorded(tmp_path: Path) -> None:
    size = 33 * 2**20
    ran = run(tmp_path / "out", f"import os\nos.write(1, b'[' + b'x' * {size} + b'\\n{{}}')")
    assert (len(ran.stdout), ran.stderr) == (size + 4, b"")
    cut, following = recorded(tmp_path / "out", "agent")
    assert (cut["raw"], cut["cut"], cut["size"]) == ("[" + "x" * 511, True, size + 1)
    assert following["msg"] == {}


# --- The end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(255)", 255),
        ("import os\nos.kill(os.getpid(), 9)", 128 + 9),
        ("import os, signal\nsignal.signal(15, signal.SIG_DFL)\nos.kill(os.getpid(), 15)", 128 + 15),
    ],
)
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, code: str, expected: int) -> None:
    assert run(tmp_path / "out", code).returncode == expected
    assert lines(tmp_path / "out")[-1]["end"] == expected


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_reach_the_command_once(tmp_path: Path, number: signal.Signals) -> None:
    """Also where all processes of a group get it, as at Ctrl-C."""
    code = f"""
import signal, sys
seen = []
signal.signal({int(number)}, lambda *_: seen.append(1))
print("ready", flush=True)
sys.stdin.read()
print(len(seen))
sys.exit(9)
"""

    def heed() -> None:
        signal.signal(number, signal.SIG_DFL)  # what ignores it starts programs that do

    with started(tmp_path / "out", code, start_new_session=True, preexec_fn=heed) as process:
        os.killpg(process.pid, number)
        time.sleep(0.3)  # a second one would come meanwhile
        found, _ = process.communicate(timeout=SECONDS)
        assert (found, process.returncode) == (b"1\n", 9)


def test_a_command_that_a_signal_ends(tmp_path: Path) -> None:
    code = "import signal, sys\nsignal.signal(15, signal.SIG_DFL)\nprint('ready', flush=True)\nsys.stdin.read()"
    with started(tmp_path / "out", code) as process:
        process.terminate()
        assert process.wait(SECONDS) == 128 + 15


IGNORES_ALL = """
import os, signal, sys, time
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
open({path!r}, "w").write(str(os.getpid()))
print("written", flush=True)
time.sleep(300)
"""


@pytest.mark.needs("linux")
def test_nothing_is_left_when_acpgen_is_killed(tmp_path: Path) -> None:
    """SIGKILL cannot be passed on. The command would survive it, although a client has killed what it takes for it."""
    with started(tmp_path / "out", IGNORES_ALL.format(path=str(tmp_path / "pid"))) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()
        process.wait(SECONDS)
        wait_for_end(int((tmp_path / "pid").read_text(encoding="utf-8")))
        assert process.stdout.read() == b""
    head, *_ = lines(tmp_path / "out")
    assert head["acp_trace"] == 1


def test_a_client_that_closes_its_end_is_the_end(tmp_path: Path) -> None:
    """What the command writes then fails, as it would without acpgen."""
    code = """
import os
print("ready", flush=True)
try:
    while True:
        os.write(1, b"x" * 65536)
except BrokenPipeError:
    os._exit(5)
"""
    with started(tmp_path / "out", code) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(SECONDS) == 5


def test_a_command_that_closes_stdin_stops_its_client(tmp_path: Path) -> None:
    code = "import os, time\nos.close(0)\nprint('ready', flush=True)\ntime.sleep(300)"
    with started(tmp_path / "out", code) as process:
        assert process.stdin is not None
        with pytest.raises(BrokenPipeError):
            pour_into(process.stdin.fileno())
        process.terminate()
        process.stdin = None
        assert process.wait(SECONDS) == 128 + 15


def test_a_process_that_the_command_leaves_behind_delays_nothing(tmp_path: Path) -> None:
    """It has stdout, so there is no end of it; all that was written before the command has ended passes."""
    code = f"""
import os, subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], stderr=subprocess.DEVNULL)
open({str(tmp_path / "pid")!r}, "w").write(str(left.pid))
os.write(1, b"x" * 60000)
os._exit(4)
"""
    try:
        ran = run(tmp_path / "out", code)
        assert (ran.returncode, len(ran.stdout)) == (4, 60_000)
    finally:
        os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)


def test_a_process_left_behind_that_writes_on_delays_nothing(tmp_path: Path) -> None:
    """Not even for a client that is slower: for it, the pipe is never empty."""
    endless = f"""
import os
os.write(1, b"ready\\n")
open({str(tmp_path / "writes")!r}, "w")
while True:
    os.write(1, b"x" * 65536)
"""
    code = f"""
import os, subprocess, sys, time
left = subprocess.Popen([sys.executable, "-c", {endless!r}], stderr=subprocess.DEVNULL)
open({str(tmp_path / "pid")!r}, "w").write(str(left.pid))
while not os.path.exists({str(tmp_path / "writes")!r}):
    time.sleep(0.02)
time.sleep(0.2)  # the pipe is full
os._exit(4)
"""
    with started(tmp_path / "out", code) as process:
        assert process.stdout is not None
        try:
            size = 0
            while chunk := process.stdout.read(2**14):
                size += len(chunk)
                assert size < 2**24
                time.sleep(0.001)
            assert process.wait(SECONDS) == 4
        finally:
            with suppress(ProcessLookupError):  # nobody reads what it writes
                os.kill(int((tmp_path / "pid").read_text(encoding="utf-8")), signal.SIGKILL)


def test_a_client_that_reads_late_gets_all(tmp_path: Path) -> None:
    code = "import os\nprint('ready', flush=True)\nos.read(0, 1)\nos.write(1, b'x' * 65536)\nos.write(1, b'y' * 65536)"
    with started(tmp_path / "out", code) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        time.sleep(0.5)  # the command has ended meanwhile, and the pipe is full
        assert process.stdout.read() == b"x" * 65536 + b"y" * 65536
        assert process.wait(SECONDS) == 0


# --- The file --------------------------------------------------------------------------------------------------------


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_owner_alone_can_read_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.touch(0o644)
    out.chmod(0o644)
    command = command_line(out, python(COPY), "--max-mib", "1")
    run_command(command, input=text(*MESSAGES) * 5_000, umask=0)
    assert (mode(out), mode(tmp_path / "out.1")) == (0o600, 0o600)


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a folder"])
def test_only_a_regular_file_is_written(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "out"
    if kind == "a link":
        (tmp_path / "target").write_text("mine", encoding="utf-8")
        out.symlink_to(tmp_path / "target")
    elif kind == "a pipe":
        os.mkfifo(out)
    else:
        out.mkdir()
    ran = run(out, f"open({str(tmp_path / 'ran')!r}, 'w')")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert f"cannot write {out}".encode() in ran.stderr
    assert not (tmp_path / "ran").exists()


def test_a_command_that_cannot_be_run(tmp_path: Path) -> None:
    ran = run_command(command_line(tmp_path / "out", ["./missing"]))
    assert ran.returncode == 2
    assert b"cannot run ./missing: No such file" in ran.stderr


@pytest.mark.parametrize("arguments", [[], ["a", "b"]])
def test_one_file_is_checked(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "acpgen", "trace", *arguments]
    assert run_command(command, cwd=tmp_path).returncode == 2


def test_a_new_file_begins_at_the_size(tmp_path: Path) -> None:
    out = tmp_path / "out"
    message = {"jsonrpc": "2.0", "method": "m", "params": {"text": "x" * 10_000}}
    run(out, "import sys\nsys.stdin.read()", text(message) * 250, "--max-mib", "1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.1"]
    assert max(path.stat().st_size for path in tmp_path.iterdir()) <= 2**20
    first, second = lines(tmp_path / "out.1"), lines(out)
    assert {**first[0], "continues": True} == second[0]
    assert second[-1]["end"] == 0
    assert [line["msg"] for line in [*first[1:], *second[1:-1]]] == [message] * (len(first) + len(second) - 3)
    assert 100 < len(first) + len(second) - 3 < 250


def test_a_line_that_was_cut_ends_before_the_next(tmp_path: Path) -> None:
    """As after a full disk, or a crash of the system."""
    out = tmp_path / "out"
    out.write_text('{"t": 0.5, "msg": {"jso', encoding="utf-8")
    run(out, COPY, text(MESSAGES[0]))
    cut, *rest = out.read_text(encoding="utf-8").splitlines()
    assert cut == '{"t": 0.5, "msg": {"jso'
    assert [next(iter(json.loads(line))) for line in rest] == ["acp_trace", "t", "t", "t"]


def test_two_conversations_in_one_file(tmp_path: Path) -> None:
    for _ in range(2):
        run(tmp_path / "out", COPY, text(MESSAGES[0]))
    found = lines(tmp_path / "out")
    assert len(found) == 8
    assert [line["connection"] for line in found] == [found[0]["connection"]] * 4 + [found[4]["connection"]] * 4
    assert found[0]["connection"] != found[4]["connection"]


def test_a_file_that_cannot_grow_does_not_end_the_conversation(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    sent = text(*MESSAGES) * 200
    command = command_line(tmp_path / "out", python(COPY))
    ran = run_command(command, input=sent, preexec_fn=limit)
    assert (ran.returncode, ran.stdout) == (0, sent)
    assert ran.stderr.count(b"recording has ended") == 1


# --- Secrets ---------------------------------------------------------------------------------------------------------

SECRET = "sk-7d1"
HEADERS = [{"name": "Authorization", "value": SECRET}]
SERVER = {"type": "http", "name": "m", "url": "https://example.org", "headers": HEADERS}
LOCAL = {"name": "m", "command": "m", "args": [], "env": [{"name": "KEY", "value": SECRET, "_meta": {"a": [SECRET]}}]}
NEW = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": [SERVER, LOCAL]}}
LOGIN = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "authenticate",
    "params": {"methodId": "key", "_meta": {"pin": 471147114711, "k": SECRET}},
}
CONCEALED = {
    "headers and variables": text(NEW),
    "a table of variables": text(
        {"jsonrpc": "2.0", "id": 3, "result": {"authMethods": [{"env": {"name": SECRET, "B": SECRET}}]}}
    ),
    "a login": text(LOGIN),
    "a login of version 2": text({**LOGIN, "method": "auth/login"}),
    "the result of a login": text(LOGIN, {"jsonrpc": "2.0", "id": 2, "result": {"_meta": {"token": SECRET}}}),
    "a message within another": text({"jsonrpc": "2.0", "method": "proxy/successor", "params": LOGIN}),
    "a batch": text([NEW, LOGIN]),
    "escapes in names": text(NEW).replace(b'"env"', b'"\\u0065nv"').replace(b'"headers"', b'"header\\u0073"'),
    "an escape in a method": text({**LOGIN, "method": "auth/login"}).replace(b"auth/login", b"auth\\/login"),
    "two members with one name": text(NEW).replace(b'"params": {', b'"params": {"env": ["sk-7d1"], "env": [], '),
    "the results of logins in a batch": text(
        [{**LOGIN, "id": 3}, {**LOGIN, "id": "4"}],
        [{"jsonrpc": "2.0", "id": each, "result": {"token": SECRET}} for each in (3, "4")],
    ),
    "the result of a login within another message": text(
        {"jsonrpc": "2.0", "id": 5, "method": "proxy/successor", "params": LOGIN},
        {"jsonrpc": "2.0", "id": 5, "result": {"token": SECRET}},
    ),
    "a byte order mark": b"\xef\xbb\xbf" + text(NEW),
    "a prefix": b"agent 1 [x]: " + text(NEW),
    "two bytes a character": text(NEW)[:-1].decode().encode("utf-16-le") + b"\n",
    "half a line": text(NEW)[:-20],
    "what is not quite JSON": text(NEW)[:-2] + b",\n",
    "a line that is cut": text(NEW)[:-3] + b"," * 600_000 + b"\n",
    "other white space": text(NEW).replace(b" ", b"\t") + b"\r\n",
}


@pytest.mark.parametrize("sent", CONCEALED.values(), ids=list(CONCEALED))
def test_secrets_are_masked(tmp_path: Path, sent: bytes) -> None:
    out = tmp_path / "out"
    # the result goes the other way
    code = "import sys\nlines = sys.stdin.buffer.read().splitlines(True)\nsys.stdout.buffer.write(b''.join(lines[1:]))"
    ran = run(out, code, sent)
    assert ran.returncode == 0
    shown = out.read_text(encoding="utf-8")
    agent = [line for line in shown.splitlines() if '"from":"agent"' in line]
    client = [line for line in shown.splitlines() if '"from":"client"' in line][:1]
    for line in [*client, *agent]:
        assert SECRET not in line
        assert "471147114711" not in line
        assert json.loads(line)["masked"] is True


def test_what_is_no_secret_stays(tmp_path: Path) -> None:
    run(tmp_path / "out", "import sys\nsys.stdin.read()", text(NEW, LOGIN, *MESSAGES))
    new, login, *others = recorded(tmp_path / "out", "client")
    hidden = [{"name": "Authorization", "value": "***"}], [{"name": "KEY", "value": "***", "_meta": {"a": ["***"]}}]
    servers = [{**SERVER, "headers": hidden[0]}, {**LOCAL, "env": hidden[1]}]
    assert new["msg"] == {**NEW, "params": {"cwd": "/", "mcpServers": servers}}
    assert login["msg"] == {**LOGIN, "params": {"methodId": "key", "_meta": {"pin": "***", "k": "***"}}}
    assert [(line["msg"], "masked" in line) for line in others] == [(each, False) for each in MESSAGES]


def test_secrets_can_be_recorded(tmp_path: Path) -> None:
    run(tmp_path / "out", COPY, text(NEW, LOGIN), "--secrets")
    assert [line["msg"] for line in recorded(tmp_path / "out", "client")] == [NEW, LOGIN]
    assert lines(tmp_path / "out")[0]["command"] == python(COPY)


def test_the_places_of_secrets_are_in_the_schemas() -> None:
    """A name of `schema/secrets.json` that no schema has would mask nothing."""
    folder = Path(__file__).resolve().parent.parent / "schema"
    known = "".join(path.read_text(encoding="utf-8") for path in folder.glob("v*/*/schema.json"))
    raw = json.loads((folder / "secrets.json").read_text(encoding="utf-8"))
    for name in raw["properties"]:
        assert f'"{name}": {{' in known
    for name in raw["params"]:
        assert f'"x-method": "{name}"' in known
