"""Every upstream bump: the findings of acpgen against known facts."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise

import pytest

from acpgen.config import SchemaChoice
from acpgen.diff.findings import Comparison, SourceVerdict, Use, WireVerdict
from tests.diff_support import (
    Pair,
    expected,
    mirrored,
    observed,
    pair_of,
    shared_messages,
    still_calls,
    without_defaults,
)
from tests.published import published
from tests.support import Packages

RELEASES = {
    1: ["0.4.9", "0.6.3", "0.10.8", "0.12.2", "0.13.6", "1.16.0", "1.21.0", "2026-11-02"],
    2: ["0.14.0", "2.0.0-alpha.1", "2.0.0-alpha.3", "2026-11-02"],
}
STABLE_ONLY = {"0.4.9", "0.6.3"}
Bump = tuple[int, str, str, str]
"""A protocol, "stable" or "unstable", and two releases."""


def bumps() -> Iterator[Bump]:
    for protocol, releases in RELEASES.items():
        for old, new in pairwise(releases):
            yield protocol, "stable", old, new
            if old not in STABLE_ONLY:
                yield protocol, "unstable", old, new


PROVING = {
    (1, "stable", "0.4.9", "0.6.3"),  # the oldest, with properties of other spelling
    (1, "stable", "0.6.3", "0.10.8"),  # anonymous objects get names
    (1, "stable", "0.10.8", "0.12.2"),  # a class becomes a union
    (1, "unstable", "1.16.0", "1.21.0"),  # a union loses a member, and types change
    (2, "unstable", "0.14.0", "2.0.0-alpha.1"),  # most kinds of findings: all is renamed
    (2, "unstable", "2.0.0-alpha.3", "2026-11-02"),  # the newest
}
"""Together they have findings of nearly all rules that any has, and take nearly all branches of the comparison."""


def of_bumps(known: Iterable[Bump]) -> pytest.MarkDecorator:
    """The bumps as parameters; in quick runs, the newest alone."""

    def marks(bump: Bump) -> list[pytest.MarkDecorator]:
        return [pytest.mark.deep] * (bump not in PROVING) + [pytest.mark.full] * (bump[-1] != "2026-11-02")

    cases = [pytest.param(bump, id="v{}-{}-{}-{}".format(*bump), marks=marks(bump)) for bump in known]
    return pytest.mark.parametrize("bump", cases)


EVERY = of_bumps(bumps())


def of(bump: Bump) -> Pair:
    protocol, kind, old, new = bump
    file = "schema.json" if kind == "stable" else "schema.unstable.json"
    return pair_of(
        *(SchemaChoice(protocol=protocol, schema=published(f"v{protocol}/{each}/{file}")) for each in (old, new))
    )


@cache
def compared(bump: Bump) -> Comparison:
    return of(bump).comparison()


def places(bump: Bump, *rules: str) -> set[str]:
    return {str(finding.place) for finding in compared(bump).findings if finding.rule.id in rules}


def renames(bump: Bump, rule: str) -> set[tuple[str, str]]:
    """The renames: the old name, and the place with the new one."""
    start = "is the new name of "
    return {
        (finding.message.removeprefix(start), str(finding.place))
        for finding in compared(bump).findings
        if finding.rule.id == rule
    }


# --- In general -----------------------------------------------------------------------------------------------------


@EVERY
def test_the_way_back_is_mirrored(bump: Bump) -> None:
    back = of(bump).reversed().comparison()
    assert mirrored(back.findings) == mirrored(compared(bump).findings, back=True)


@EVERY
def test_nothing_lies_between_a_release_and_itself(bump: Bump) -> None:
    old = of(bump).old.sources
    assert pair_of(old, old).comparison().findings == ()


@EVERY
def test_comparing_takes_a_moment(bump: Bump) -> None:
    """The models are compiled already; the comparison usually takes 0.01 seconds of CPU time."""
    pair = of(bump)
    pair.comparison()
    start = time.process_time()
    pair.comparison()
    assert time.process_time() - start < 2


@pytest.mark.full
@EVERY
def test_messages_fare_no_worse_than_predicted(bump: Bump, packages: Packages) -> None:
    """Packages of both releases read what the other one writes, over values that its schema admits."""
    pair = of(bump)
    for message, names in shared_messages(pair):
        for way, back in ((pair, False), (pair.reversed(), True)):
            predicted = expected(compared(bump).findings, *message, back=back)
            if predicted is not WireVerdict.BREAKS:
                seen = observed(way, (names[1], names[0]) if back else names, packages, count=15, said=without_defaults)
                assert seen.rank <= predicted.rank, (message, "new to old" if back else "old to new")


@EVERY
def test_code_fares_no_worse_than_predicted(bump: Bump, packages: Packages) -> None:
    """Names that are gone, and calls of constructors that no longer work, have findings."""
    pair = of(bump)
    findings = compared(bump).findings
    old, new = pair.old.package(packages), pair.new.package(packages)
    gone = {each for each in set(old.__all__) - set(new.__all__) if each in pair.models[0].by_name}
    assert gone == told_to_be_gone(bump)
    broken = {
        each.place.type
        for each in findings
        if Use.CONSTRUCT in each.source.uses and each.source.verdict is SourceVerdict.BREAKS
    }
    for name in pair.models[0].by_name.keys() & pair.models[1].by_name.keys():
        kinds = (getattr(old, name), getattr(new, name))
        if all(map(dataclasses.is_dataclass, kinds)) and not still_calls(*kinds):
            assert {kind.__name__ for kind in kinds[1].__mro__} & broken, name


def told_to_be_gone(bump: Bump) -> set[str]:
    """The names of OLD that are removed or renamed in the findings."""
    return places(bump, "type-removed") | {old for old, _ in renames(bump, "type-renamed")}


# --- Facts ----------------------------------------------------------------------------------------------------------

V1, V1_UNSTABLE, V2, V2_UNSTABLE = (1, "stable"), (1, "unstable"), (2, "stable"), (2, "unstable")

METHODS_ADDED = {
    (*V1, "0.4.9", "0.6.3"): set(),
    (*V1, "0.6.3", "0.10.8"): {"session/set_config_option"},
    (*V1, "0.10.8", "0.12.2"): {"session/list", "session/resume", "session/close"},
    (*V1, "0.12.2", "0.13.6"): {"logout", "session/delete"},
    (*V1, "0.13.6", "1.16.0"): set(),
    (*V1, "1.16.0", "1.21.0"): {"$/cancel_request", "elicitation/create", "elicitation/complete"},
    (*V1, "1.21.0", "2026-11-02"): set(),
    (*V2, "0.14.0", "2.0.0-alpha.1"): {"$/cancel_request"},
    (*V2, "2.0.0-alpha.1", "2.0.0-alpha.3"): {"elicitation/create", "elicitation/complete"},
    (*V2, "2.0.0-alpha.3", "2026-11-02"): {"terminal/cancel", "tool_call/cancel"},
}
METHODS_REMOVED = {
    (*V1, "0.6.3", "0.10.8"): {"session/set_model"},
    (*V2, "0.14.0", "2.0.0-alpha.1"): {"session/load"},
}
METHODS_RENAMED = {
    (*V2, "0.14.0", "2.0.0-alpha.1"): {("authenticate", "auth/login"), ("logout", "auth/logout")},
    (*V2_UNSTABLE, "0.14.0", "2.0.0-alpha.1"): {("authenticate", "auth/login"), ("logout", "auth/logout")},
}
_OF_ALPHA = {
    ("AuthenticateRequest", "LoginAuthRequest"),
    ("AuthenticateResponse", "LoginAuthResponse"),
    ("LogoutRequest", "LogoutAuthRequest"),
    ("LogoutResponse", "LogoutAuthResponse"),
    ("SessionNotification", "UpdateSessionNotification"),
    ("CancelNotification", "CancelSessionNotification"),
    ("UnstructuredCommandInput", "AvailableCommandInputText"),
}
_OF_0_11 = {
    ("KillTerminalCommandRequest", "KillTerminalRequest"),
    ("KillTerminalCommandResponse", "KillTerminalResponse"),
    ("FileSystemCapability", "FileSystemCapabilities"),
}
TYPES_RENAMED = {
    (*V1, "0.10.8", "0.12.2"): _OF_0_11,
    (*V1_UNSTABLE, "0.10.8", "0.12.2"): _OF_0_11,
    (*V1_UNSTABLE, "0.12.2", "0.13.6"): {
        ("SetProvidersRequest", "SetProviderRequest"),
        ("SetProvidersResponse", "SetProviderResponse"),
        ("DisableProvidersRequest", "DisableProviderRequest"),
        ("DisableProvidersResponse", "DisableProviderResponse"),
    },
    (*V1_UNSTABLE, "1.16.0", "1.21.0"): {("UntitledMultiSelectItems", "MultiSelectItemsString")},
    (*V2, "0.14.0", "2.0.0-alpha.1"): _OF_ALPHA,
    (*V2_UNSTABLE, "0.14.0", "2.0.0-alpha.1"): _OF_ALPHA
    | {
        ("UntitledMultiSelectItems", "MultiSelectItemsString"),
        ("SetSessionConfigOptionRequestValueId", "SetSessionConfigOptionRequestId"),
    },
}
"""All renames of those bumps; a definition that is the payload of a single member bears the name of the member."""
PROPERTIES_RENAMED = {
    (*V2, "0.14.0", "2.0.0-alpha.1"): {
        ("id", "AuthMethodAgent.methodId"),
        ("id", "SessionConfigOptionSelect.configId"),
        ("group", "SessionConfigSelectGroup.groupId"),
    },
    (*V2_UNSTABLE, "0.14.0", "2.0.0-alpha.1"): {
        ("id", "PlanUpdateContentFile.planId"),
        ("id", "NesSuggestionEdit.suggestionId"),
        ("id", "AuthMethodTerminal.methodId"),
    },
}
"""Some of them."""
STRUCTS_THAT_BECAME_UNIONS = {
    (*V1, "0.10.8", "0.12.2"): {"AuthMethod"},
    (*V1, "1.16.0", "1.21.0"): {"AuthMethod", "SetSessionConfigOptionRequest"},
    (*V1_UNSTABLE, "0.10.8", "0.12.2"): {"AuthMethod", "SetSessionConfigOptionRequest"},
}
MEMBERS_ADDED = {
    (*V1, "0.6.3", "0.10.8"): {"SessionUpdate.config_option_update"},
    (*V1, "0.10.8", "0.12.2"): {"SessionUpdate.session_info_update"},
    (*V1, "0.12.2", "0.13.6"): {"SessionUpdate.usage_update"},
    (*V1, "0.13.6", "1.16.0"): set(),
    (*V1, "1.16.0", "1.21.0"): {"AuthMethod.terminal", "SessionConfigOption.boolean"},
    (*V1, "1.21.0", "2026-11-02"): {
        "SessionUpdate.notice",
        "SessionUpdate.compaction_update",
        "SessionUpdate.compaction_summary_chunk",
    },
    (*V2, "2.0.0-alpha.1", "2.0.0-alpha.3"): {"AuthMethod.terminal"},
}
MEMBERS_REMOVED = {
    (*V1_UNSTABLE, "1.16.0", "1.21.0"): {"AuthMethod.env_var"},
    (*V2_UNSTABLE, "2.0.0-alpha.1", "2.0.0-alpha.3"): {"AuthMethod.env_var"},
}
PROPERTIES_ADDED = {
    (*V1, "0.12.2", "0.13.6"): {
        "AgentCapabilities.auth",
        "ContentChunk.messageId",
        "NewSessionRequest.additionalDirectories",
        "LoadSessionRequest.additionalDirectories",
    },
    (*V1, "1.16.0", "1.21.0"): {"ClientCapabilities.auth", "ClientCapabilities.elicitation"},
    (*V1_UNSTABLE, "0.10.8", "0.12.2"): {"AgentCapabilities.auth", "ClientCapabilities.auth"},
    (*V2, "2.0.0-alpha.1", "2.0.0-alpha.3"): {"ClientCapabilities.auth"},
}
"""Some of them."""
RESPELLED = {(*V1, "0.13.6", "1.16.0"): {"AuthMethodAgent.id", "AuthenticateRequest.methodId"}}
PROPERTIES_REMOVED = {(*V2, "0.14.0", "2.0.0-alpha.1"): {"AgentAuthCapabilities.logout"}}
ADDED = ("field-added-optional", "field-added-required")
REMOVED = ("field-removed-optional", "field-removed-required")


def facts(*tables: Iterable[Bump]) -> pytest.MarkDecorator:
    return of_bumps(sorted({bump for table in tables for bump in table}))


@facts(METHODS_ADDED)
def test_methods(bump: Bump) -> None:
    assert places(bump, "method-added") == METHODS_ADDED[bump]
    assert places(bump, "method-removed") == METHODS_REMOVED.get(bump, set())
    assert renames(bump, "method-renamed") == METHODS_RENAMED.get(bump, set())


@facts(TYPES_RENAMED, METHODS_RENAMED)
def test_renames_of_types(bump: Bump) -> None:
    assert renames(bump, "type-renamed") == TYPES_RENAMED[bump]
    assert renames(bump, "method-renamed") == METHODS_RENAMED.get(bump, set())
    gone, come = places(bump, "type-removed"), places(bump, "type-added")
    assert not {old for old, _ in TYPES_RENAMED[bump]} & gone
    assert not {new for _, new in TYPES_RENAMED[bump]} & come


@facts(PROPERTIES_RENAMED, PROPERTIES_ADDED, PROPERTIES_REMOVED, RESPELLED)
def test_properties(bump: Bump) -> None:
    assert renames(bump, "field-renamed") >= PROPERTIES_RENAMED.get(bump, set())
    assert places(bump, *ADDED) >= PROPERTIES_ADDED.get(bump, set())
    assert places(bump, *REMOVED) >= PROPERTIES_REMOVED.get(bump, set())
    assert places(bump, "field-type-respelled") >= RESPELLED.get(bump, set())


@facts(STRUCTS_THAT_BECAME_UNIONS)
def test_classes_that_became_unions(bump: Bump) -> None:
    assert places(bump, "type-kind-changed") == STRUCTS_THAT_BECAME_UNIONS[bump]


@facts(MEMBERS_ADDED, MEMBERS_REMOVED)
def test_members(bump: Bump) -> None:
    if bump in MEMBERS_ADDED:
        assert places(bump, "union-member-added") == MEMBERS_ADDED[bump]
    assert places(bump, "union-member-removed") == MEMBERS_REMOVED.get(bump, set())


def test_an_open_enum_got_a_value() -> None:
    bump = (*V1, "0.13.6", "1.16.0")
    (found,) = [each for each in compared(bump).findings if each.rule.id == "enum-value-added"]
    assert str(found.place) == "SessionConfigOptionCategory.model_config"
    assert found.worst_wire is WireVerdict.OK


def test_version_two_lost_its_null_ids() -> None:
    bump = (*V2, "2.0.0-alpha.3", "2026-11-02")
    assert "null-ids-removed" in {each.rule.id for each in compared(bump).findings}
