#!/usr/bin/env bash
# Five published ACP agents (npm, pinned below) are asked for a session that they do not know, by the same valid
# message: session/prompt with the sessionId "nope", after initialize with protocol version 1.
#
# One would guess: the error -32002 "Resource not found", which the protocol has for it, from all of them.
# Seen on 2026-11-28: three codes (-32602, -32002, -32603); the id is in `data` in three of them, one says what it means
# in data.details alone, and one in the message alone.
# A client that opens a lost session again cannot go by the code alone.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" \
  @google/gemini-cli@0.61.0 @agentclientprotocol/codex-acp@2.6.0 @agentclientprotocol/claude-agent-acp@0.101.0 \
  @qwen-code/qwen-code@0.24.4 opencode-ai@1.18.33 >/dev/null 2>&1
cat >ask.py <<'PY'
import json
import os
import signal
import subprocess
import threading

AGENTS = {
    "gemini-cli 0.61.0": ["gemini", "--experimental-acp"],
    "codex-acp 2.6.0": ["codex-acp"],
    "claude-agent-acp 0.101.0": ["claude-agent-acp"],
    "qwen-code 0.24.4": ["qwen", "--acp"],
    "opencode 1.18.33": ["opencode", "acp"],
}
MESSAGES = [
    ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
    ("session/prompt", {"sessionId": "nope", "prompt": [{"type": "text", "text": "hello"}]}),
]


def ask(command):
    home = os.path.join(os.getcwd(), "home", command[0])
    os.makedirs(home)
    env = {"PATH": os.environ["PATH"], "HOME": home, "IS_SANDBOX": "1", "GEMINI_API_KEY": "x", "OPENAI_API_KEY": "x"}
    program = os.path.join("node_modules", ".bin", command[0])
    pipe = subprocess.PIPE
    agent = subprocess.Popen(
        [program, *command[1:]], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, start_new_session=True
    )
    limit = threading.Timer(180, os.killpg, (agent.pid, signal.SIGKILL))
    limit.start()
    found = None
    try:
        for number, (method, params) in enumerate(MESSAGES):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            agent.stdin.write(json.dumps(message).encode() + b"\n")
            agent.stdin.flush()
            for line in agent.stdout:
                try:
                    found = json.loads(line)
                except ValueError:
                    continue
                if isinstance(found, dict) and found.get("id") == number and "method" not in found:
                    break
    finally:
        limit.cancel()
        os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
    return found.get("error", {"code": "no error"})


for name, command in AGENTS.items():
    error = ask(command)
    print(f"{name}: {error['code']} {error.get('message')!r}, data {json.dumps(error.get('data'))}")
PY
python3 ask.py | tee seen.txt
diff seen.txt - <<'SEEN'
gemini-cli 0.61.0: -32602 'Session not found: nope', data null
codex-acp 2.6.0: -32002 'Session nope not found', data {"sessionId": "nope"}
claude-agent-acp 0.101.0: -32002 'Resource not found', data {"sessionId": "nope"}
qwen-code 0.24.4: -32603 'Internal error', data {"details": "Session not found: nope"}
opencode 1.18.33: -32602 'Invalid params: session not found: nope', data {"sessionId": "nope"}
SEEN
