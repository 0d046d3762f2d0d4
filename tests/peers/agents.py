"""Five published agents: what is installed, how it is started, and what it has to find in its home."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop import peers


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """An agent of the npm registry. `{model}` in a text stands for the address of the model, `{home}` for its home."""

    name: str
    package: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)
    """What is in its home before it starts, by path."""
    login: str | None = None
    """The method that it has to be authenticated by."""
    speaks_2: bool = False
    asking_mode: str | None = None
    """The mode in which it asks about commands and edits, where it does not begin in one."""
    free_mode: str | None = None
    """A mode in which it does not ask."""
    loads_next_minute: bool = False
    """True if a session can be loaded only after the minute in which it was opened."""

    @property
    def version(self) -> str:
        return self.package.rpartition("@")[2]


CODEX = """\
model = "ours"
model_provider = "ours"

[model_providers.ours]
name = "ours"
base_url = "{model}/v1"
env_key = "OUR_KEY"
wire_api = "responses"
"""
OPENCODE = {
    "autoupdate": False,
    "share": "disabled",
    "model": "ours/ours",
    "small_model": "ours/ours",
    "permission": {"bash": "ask", "edit": "ask"},
    "provider": {
        "ours": {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": "{model}/v1", "apiKey": "x"},
            "models": {"ours": {"name": "Ours"}},
        }
    },
}

AGENTS = (
    Published(
        "gemini",
        "@google/gemini-cli@0.61.0",
        ("gemini", "--experimental-acp"),
        {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": "{model}"},
        {".gemini/settings.json": json.dumps({"security": {"folderTrust": {"enabled": False}}})},
        login="gemini-api-key",
        free_mode="yolo",
        loads_next_minute=True,
    ),
    Published(
        "codex",
        "@agentclientprotocol/codex-acp@2.6.0",
        ("codex-acp",),
        {"OUR_KEY": "x", "OPENAI_API_KEY": "x"},
        {".codex/config.toml": CODEX},
        speaks_2=True,
        asking_mode="read-only",
        free_mode="agent-full-access",
    ),
    Published(
        "claude",
        "@agentclientprotocol/claude-agent-acp@0.101.0",
        ("claude-agent-acp",),
        {
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": "{model}",
            "ANTHROPIC_API_KEY": "x",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
        },
        speaks_2=True,
        asking_mode="default",
        free_mode="bypassPermissions",
    ),
    Published(
        "qwen",
        "@qwen-code/qwen-code@0.24.4",
        ("qwen", "--acp"),
        {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "{model}/v1", "OPENAI_MODEL": "ours"},
        login="openai",
        asking_mode="default",
        free_mode="yolo",
    ),
    Published(
        "opencode",
        "opencode-ai@1.18.33",
        ("opencode", "acp"),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
        {".config/opencode/opencode.json": json.dumps(OPENCODE)},
    ),
)
KEPT = ("PATH", "LANG", "TERM", "TMPDIR")
"""The variables of this process that an agent gets: none that could reach somebody's account."""


def install(agent: Published, home: Path) -> Path:
    """The folder with the programs of an agent, installed if it is not there; raises `MissingPeerError`."""
    npm = shutil.which("npm")
    if npm is None:
        raise peers.MissingPeerError("npm")
    folder = home / agent.name
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    peers.install(folder, agent.package, (npm, "install", *quiet, "--prefix", folder, agent.package))
    return folder / "node_modules" / ".bin"


@dataclass(frozen=True, slots=True)
class Ready:
    """An agent with a home of its own, ready to be started."""

    agent: Published
    command: list[str]
    env: dict[str, str]


def prepare(agent: Published, programs: Path, home: Path, model: str) -> Ready:
    """Make a home for an agent that reaches the model at the URL `model`."""
    for path, text in agent.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text.replace("{model}", model), encoding="utf-8")
    places = {
        "HOME": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_STATE_HOME": home / ".local" / "state",
        "XDG_CACHE_HOME": home / ".cache",
    }
    own = {name: text.replace("{model}", model) for name, text in agent.env.items()}
    env = {name: os.environ[name] for name in KEPT if name in os.environ} | {k: str(v) for k, v in places.items()} | own
    program, *rest = agent.command
    return Ready(agent, [str(programs / program), *rest], env)
