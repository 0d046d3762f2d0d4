"""What changed when, as the history of the protocol has it, and not as `acpgen diff` does.

A change carries the version of upstream's repository in which it came; the published releases are put among those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from acpgen.schema.data import data_folder
from tests.published import published

Tag = tuple[int, ...]

TAGS: dict[int, dict[str, Tag]] = {
    1: {
        "0.4.9": (0, 4, 9),
        "0.6.3": (0, 6, 3),
        "0.10.8": (0, 10, 8),
        "0.12.2": (0, 12, 2),
        "0.13.6": (0, 13, 6),
        "1.16.0": (1, 1, 0),
        "1.21.0": (1, 7, 0),
        "2026-11-02": (2026,),
    },
    2: {
        "0.14.0": (0, 14, 0),
        "2.0.0-alpha.1": (1, 5, 0),
        "2.0.0-alpha.3": (1, 7, 0),
        "2026-11-02": (2026,),
    },
}
"""The releases by protocol, in their order, each with the version of the repository that it is of."""

BUNDLED = {1: ("0.10.8", "2026-11-02"), 2: ("2026-11-02",)}


@dataclass(frozen=True, slots=True)
class Pair:
    """Two releases of one protocol, the older one first; `bundled` are ours, the others upstream's."""

    protocol: int
    old: str
    new: str
    unstable: bool = False
    bundled: bool = False

    def __str__(self) -> str:
        kind = f"{' unstable' if self.unstable else ''}{' bundled' if self.bundled else ''}"
        return f"v{self.protocol} {self.old} to {self.new}{kind}"

    @property
    def files(self) -> tuple[Path, Path]:
        """The schemas of both; skips the test where they cannot be had."""
        kind = "schema.unstable.json" if self.unstable else "schema.json"
        old, new = (f"v{self.protocol}/{release}/{kind}" for release in (self.old, self.new))
        if self.bundled:
            return data_folder() / "schema" / old, data_folder() / "schema" / new
        return published(old), published(new)

    @property
    def tags(self) -> tuple[Tag, Tag]:
        """The versions of both."""
        known = TAGS[self.protocol]
        return known[self.old], known[self.new]

    @property
    def kind(self) -> str:
        """The file, as the tables below write it."""
        return f"{self.protocol}{'u' if self.unstable else 's'}"


def _consecutive(protocol: int, releases: Iterable[str], *, unstable: bool) -> Iterator[Pair]:
    for old, new in pairwise(releases):
        yield Pair(protocol, old, new, unstable)


SMALL = Pair(1, *BUNDLED[1], bundled=True)
STABLE = [pair for protocol, releases in TAGS.items() for pair in _consecutive(protocol, releases, unstable=False)]
UNSTABLE = [
    pair
    for protocol, releases in TAGS.items()
    # the first releases had one file only
    for pair in _consecutive(protocol, [each for each, tag in releases.items() if tag >= (0, 7)], unstable=True)
]


# --- Methods --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """A change to the methods: `added`, `removed`, or else `old` is called `new` from now on."""

    kinds: str
    tag: Tag
    old: str | None
    new: str | None


def _added(kinds: str, tag: Tag, *names: str) -> list[Step]:
    return [Step(kinds, tag, None, name) for name in names]


def _removed(kinds: str, tag: Tag, *names: str) -> list[Step]:
    return [Step(kinds, tag, name, None) for name in names]


_DOCUMENTS = tuple(f"document/did{each}" for each in ("Open", "Change", "Close", "Save", "Focus"))
_EDITS = tuple(f"nes/{each}" for each in ("start", "suggest", "close", "accept", "reject"))
_PROVIDERS = tuple(f"providers/{each}" for each in ("list", "set", "disable"))
_MCP = ("mcp/connect", "mcp/disconnect")

METHODS: list[Step] = [
    *_removed("1s", (0, 7, 0), "session/set_model"),
    *_added("1s", (0, 10, 8), "session/set_config_option"),
    *_added("1s", (0, 11, 1), "session/list"),
    *_added("1s", (0, 12, 2), "session/resume", "session/close"),
    *_added("1s", (0, 13, 3), "logout"),
    *_added("1s", (0, 13, 6), "session/delete"),
    *_added("1s 2s", (1, 2, 0), "$/cancel_request"),
    *_added("1s 2s", (1, 7, 0), "elicitation/create", "elicitation/complete"),
    *_added("1u", (0, 11, 0), "session/stop"),
    Step("1u", (0, 11, 1), "session/stop", "session/close"),
    *_added("1u", (0, 11, 3), "session/elicitation", "session/elicitation/complete", "logout"),
    *_added("1u", (0, 11, 4), *_DOCUMENTS, *_EDITS),
    Step("1u", (0, 11, 5), "session/elicitation", "elicitation/create"),
    Step("1u", (0, 11, 5), "session/elicitation/complete", "elicitation/complete"),
    *_added("1u", (0, 11, 7), *_PROVIDERS),
    *_added("1u", (0, 13, 0), *_MCP, "mcp/message"),
    *_added("1u", (0, 13, 1), "session/delete"),
    *_removed("1u", (0, 13, 5), "session/set_model"),
    Step("2s 2u", (1, 2, 0), "authenticate", "auth/login"),
    Step("2s 2u", (1, 2, 0), "logout", "auth/logout"),
    *_removed("2s 2u", (1, 3, 0), "session/load"),
    *_added("2s 2u", (2026,), "terminal/cancel", "tool_call/cancel"),
    *_added("1u 2u", (2026,), "auth/status", "auth/status_update"),
    *_added("1u 2u", (2026,), "session/archive", "session/unarchive", "session/set_title", "session/status"),
    *_removed("1u 2u", (2026,), *_DOCUMENTS, *_EDITS, *_MCP),
]


def method_changes(pair: Pair) -> set[tuple[str, str | None, str | None]]:
    """What became of the methods between two releases, as rule, old and new name: what came and went is left out."""
    came: set[str] = set()
    went: set[str] = set()
    renamed: dict[str, str] = {}
    for step in _between(METHODS, pair):
        if step.old is None and step.new is not None:
            came.add(step.new)
        elif step.old is not None and step.new is None:
            went.add(step.old)
        elif step.old in came and step.new is not None:
            came = came - {step.old} | {step.new}
        elif step.old is not None and step.new is not None:
            renamed[step.old] = step.new
    return {
        *(("method-added", None, name) for name in came),
        *(("method-removed", name, None) for name in went),
        *(("method-renamed", old, new) for old, new in renamed.items()),
    }


def _between(steps: Iterable[Step], pair: Pair) -> Iterator[Step]:
    old, new = pair.tags
    return (step for step in steps if pair.kind in step.kinds.split() and old < step.tag <= new)


# --- Types and properties -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fact:
    """A finding that there has to be: the rule, and the place, with the old name before it where that is another."""

    kinds: str
    tag: Tag
    rule: str
    place: str
    was: str | None = None

    @property
    def owner(self) -> str | None:
        """The type, for a fact about a part of it."""
        owner, dot, _ = self.place.partition(".")
        return owner if dot else None


def _renamed(kinds: str, tag: Tag, *pairs: tuple[str, str]) -> list[Fact]:
    return [Fact(kinds, tag, "type-renamed", new, old) for old, new in pairs]


RENAMES: list[Fact] = [
    # for a while the update in a request for permission was an anonymous object, and commands' input stood inline
    *_renamed("1s", (0, 5, 0), ("ToolCallUpdate", "RequestPermissionRequestToolCall")),
    *_renamed("1s", (0, 7, 0), ("RequestPermissionRequestToolCall", "ToolCallUpdate")),
    *_renamed("1s", (0, 7, 0), ("AvailableCommandInputUnstructuredCommandInput", "UnstructuredCommandInput")),
    *_renamed(
        "1s 1u",
        (0, 11, 0),
        ("FileSystemCapability", "FileSystemCapabilities"),
        ("KillTerminalCommandRequest", "KillTerminalRequest"),
        ("KillTerminalCommandResponse", "KillTerminalResponse"),
    ),
    *_renamed(
        "1u",
        (0, 13, 3),
        ("SetProvidersRequest", "SetProviderRequest"),
        ("SetProvidersResponse", "SetProviderResponse"),
        ("DisableProvidersRequest", "DisableProviderRequest"),
        ("DisableProvidersResponse", "DisableProviderResponse"),
    ),
    *_renamed(
        "2s 2u",
        (1, 2, 0),
        ("AuthenticateRequest", "LoginAuthRequest"),
        ("AuthenticateResponse", "LoginAuthResponse"),
        ("LogoutRequest", "LogoutAuthRequest"),
        ("LogoutResponse", "LogoutAuthResponse"),
        ("SessionNotification", "UpdateSessionNotification"),
        ("CancelNotification", "CancelSessionNotification"),
    ),
    # StringMultiSelectItems and TextCommandInput got a tag with their new names: packages name them by it
    *_renamed("1u 2u", (1, 3, 0), ("UntitledMultiSelectItems", "MultiSelectItemsString")),
    *_renamed("2s 2u", (1, 3, 0), ("UnstructuredCommandInput", "AvailableCommandInputText")),
    *_renamed("2u", (1, 3, 0), ("SetSessionConfigOptionRequestValueId", "SetSessionConfigOptionRequestId")),
    *_renamed("2s 2u", (2026,), ("AuthCapabilities", "ClientAuthCapabilities")),
]
"""All types that were renamed, under the names that packages have for them."""

_ID, _GROUP, _INFO = (("id", "methodId"), ("id", "configId"), ("id", "planId")), ("group", "groupId"), "info"
FIELDS: list[tuple[str, Tag, tuple[tuple[str, str], ...]]] = [
    ("1s", (0, 6, 2), (("meta", "_meta"),)),
    ("2s 2u", (1, 3, 0), (*_ID, _GROUP, ("clientInfo", _INFO), ("agentInfo", _INFO))),
    ("2u", (1, 3, 0), (("id", "suggestionId"),)),
    ("2u", (1, 5, 0), (("id", "providerId"), ("id", "serverId"), ("acpId", "serverId"))),
    ("1u", (1, 7, 0), (("id", "planId"), ("id", "providerId"), ("id", "serverId"), ("acpId", "serverId"))),
]
"""All properties that were renamed, wherever they are."""

FACTS: list[Fact] = [
    # authentication
    Fact("1s", (0, 7, 0), "type-removed", "AuthMethodId"),
    Fact("1s 1u", (0, 11, 0), "type-kind-changed", "AuthMethod"),
    Fact("1u", (0, 11, 0), "type-added", "AuthMethodEnvVar"),
    Fact("1u", (0, 11, 0), "type-added", "AuthMethodTerminal"),
    Fact("1u", (0, 11, 0), "field-added-optional", "ClientCapabilities.auth"),
    Fact("1u", (0, 11, 3), "field-added-optional", "AgentCapabilities.auth"),
    Fact("1s", (0, 13, 3), "field-added-optional", "AgentCapabilities.auth"),
    Fact("1s", (0, 13, 3), "type-added", "AgentAuthCapabilities"),
    Fact("1s 1u", (0, 13, 8), "type-added", "AuthMethodId"),
    Fact("1s 1u", (0, 13, 8), "field-type-respelled", "AuthMethodAgent.id"),
    Fact("2s 2u", (1, 2, 0), "field-removed-optional", "AgentAuthCapabilities.logout"),
    Fact("2u", (1, 2, 0), "field-type-changed", "AuthMethodTerminal.env"),
    Fact("2s 2u", (1, 3, 0), "field-renamed", "AuthMethodAgent.methodId", "id"),
    Fact("1s", (1, 7, 0), "type-added", "AuthMethodTerminal"),
    Fact("1s", (1, 7, 0), "field-added-optional", "ClientCapabilities.auth"),
    Fact("1s", (1, 7, 0), "type-kind-changed", "AuthMethod"),
    Fact("1s 2s", (1, 7, 0), "union-member-added", "AuthMethod.terminal"),
    Fact("1u 2u", (1, 7, 0), "union-member-removed", "AuthMethod.env_var"),
    Fact("1u 2u", (1, 7, 0), "type-removed", "AuthEnvVar"),
    Fact("1u 2u", (2026,), "field-added-optional", "AgentAuthCapabilities.status"),
    # what became stable, or was tried
    Fact("1s", (0, 10, 8), "union-member-added", "SessionUpdate.config_option_update"),
    Fact("1s", (0, 11, 1), "union-member-added", "SessionUpdate.session_info_update"),
    Fact("1s", (0, 13, 5), "field-added-optional", "NewSessionRequest.additionalDirectories"),
    Fact("1s", (0, 13, 6), "union-member-added", "SessionUpdate.usage_update"),
    Fact("1u", (0, 11, 0), "field-added-optional", "ContentChunk.messageId"),
    Fact("1s", (0, 13, 6), "field-added-optional", "ContentChunk.messageId"),
    Fact("1s", (1, 1, 0), "enum-value-added", "SessionConfigOptionCategory.model_config"),
    Fact("1s", (1, 3, 0), "union-member-added", "SessionConfigOption.boolean"),
    Fact("1u", (0, 13, 0), "union-member-added", "McpServer.acp"),
    Fact("1u", (0, 13, 4), "union-member-added", "SessionUpdate.plan_update"),
    Fact("1u", (1, 7, 0), "union-member-added", "SessionUpdate.compaction_update"),
    Fact("1u", (1, 6, 0), "field-added-optional", "ToolCallUpdate.name"),
    Fact("1s 2s", (2026,), "union-member-added", "SessionUpdate.notice"),
    Fact("1s 2s", (2026,), "union-member-added", "SessionUpdate.compaction_update"),
    # shapes
    Fact("1s 2s", (1, 3, 0), "type-kind-changed", "SetSessionConfigOptionRequest"),
    Fact("1u", (0, 11, 1), "type-kind-changed", "SetSessionConfigOptionRequest"),
    Fact("2s", (2026,), "null-ids-removed", "the protocol"),
    Fact("1u 2u", (2026,), "method-side-changed", "mcp/message"),
]
"""Findings that a comparison must have."""


def facts(pair: Pair) -> list[Fact]:
    """What a comparison of the pair has to find, renamed types among it."""
    old, new = pair.tags
    return [each for each in (*RENAMES, *FACTS) if pair.kind in each.kinds.split() and old < each.tag <= new]


def renamed_fields(pair: Pair) -> set[tuple[str, str]]:
    """The pairs of an old and a new name that properties have."""
    old, new = pair.tags
    return {name for kinds, tag, names in FIELDS for name in names if pair.kind in kinds.split() and old < tag <= new}
