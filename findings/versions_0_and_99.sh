#!/usr/bin/env bash
# Five published ACP agents (npm, pinned below) are asked to `initialize` with versions of the protocol that they do not
# speak: 0, and 99 as a client of the far future would.
#
# One would guess: each answers both with the newest version that it speaks, as the protocol wants it.
# Seen on 2026-11-28: codex-acp and claude-agent-acp refuse 0 with an error that has a code of its own and the versions
# they speak in `data`, and answer 99 with 2, though a client that asks for 1 gets 1: protocol 2, in its own shapes, is
# what such a client then talks to. The other three answer 1 to both.
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
VERSIONS = (0, 99)


def ask(command, version):
    home = os.path.join(os.getcwd(), "home", command[0], str(version))
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
        params = {"protocolVersion": version, "clientCapabilities": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        agent.stdin.write(json.dumps(message).encode() + b"\n")
        agent.stdin.flush()
        for line in agent.stdout:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict) and found.get("id") == 1 and "method" not in found:
                break
    finally:
        limit.cancel()
        os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
    if "error" in found:
        return f"error {found['error']['code']}, data {json.dumps(found['error'].get('data'))}"
    return f"version {found['result']['protocolVersion']}"


for name, command in AGENTS.items():
    print(f"{name}: " + "; ".join(f"{version} -> {ask(command, version)}" for version in VERSIONS))
PY
python3 ask.py | tee seen.txt
diff seen.txt - <<'SEEN'
gemini-cli 0.61.0: 0 -> version 1; 99 -> version 1
codex-acp 2.6.0: 0 -> error -32022, data {"requested": 0, "supported": [1, 2]}; 99 -> version 2
claude-agent-acp 0.101.0: 0 -> error -32022, data {"requested": 0, "supported": [1, 2]}; 99 -> version 2
qwen-code 0.24.4: 0 -> version 1; 99 -> version 1
opencode 1.18.33: 0 -> version 1; 99 -> version 1
SEEN
