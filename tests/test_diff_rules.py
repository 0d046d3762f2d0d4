"""Every rule of comparisons: the right findings, with verdicts that generated packages prove."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType

import pytest

from acpgen.diff.compare import RULES
from acpgen.diff.findings import SourceVerdict, Use
from acpgen.diff.report import headline, summary
from tests.diff_cases import CASES
from tests.diff_cases_methods import ANNOUNCING, asking_twice
from tests.diff_schemas import TEXT, WHOLE, Case, Schema, asking, holding, message, one_of, thing
from tests.diff_support import (
    Pair,
    Written,
    expected,
    mirrored,
    observed,
    pair_of,
    shared_messages,
    still_calls,
    verdicts,
)
from tests.support import Packages

EVERY = pytest.mark.parametrize("case", CASES, ids=str)


def one_way() -> Iterator[Case]:
    """The cases without those that are another one with its schemas exchanged."""
    known: list[tuple[Schema, Schema]] = []
    for case in CASES:
        if (case.new, case.old) not in known:
            yield case
        known.append((case.old, case.new))


ONE_WAY = list(one_way())


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("compared"))


def pair(case: Case, written: Written) -> Pair:
    old, new = case.protocols
    return pair_of(written(case.old, old), written(case.new, new))


@EVERY
def test_what_is_found(case: Case, written: Written) -> None:
    findings = pair(case, written).comparison().findings
    found = [each for each in findings if each.rule.id == case.rule and str(each.place) == case.place]
    assert len(found) == 1, findings
    assert verdicts(found[0]) == dict(case.wire)
    assert (found[0].source.verdict.value, tuple(use.value for use in found[0].source.uses)) == (case.source, case.uses)
    assert {each.rule.id for each in findings} - {case.rule} == case.also


@pytest.mark.parametrize("case", ONE_WAY, ids=str)
def test_the_way_back_has_the_mirrored_findings(case: Case, written: Written) -> None:
    there = pair(case, written)
    assert mirrored(there.reversed().comparison().findings) == mirrored(there.comparison().findings, back=True)


@EVERY
def test_nothing_is_found_between_a_schema_and_itself(case: Case, written: Written) -> None:
    sources = written(case.old)
    assert pair_of(sources, sources).comparison().findings == ()


# --- The verdicts are true -------------------------------------------------------------------------------------------

ROUTING = ("method-added", "method-removed", "method-renamed", "method-side-changed")
PROVED = [case for case in ONE_WAY if not case.unseen and case.rule not in ROUTING]


@pytest.mark.full
@pytest.mark.parametrize("case", PROVED, ids=str)
def test_wire_verdicts_are_what_becomes_of_messages(case: Case, written: Written, packages: Packages) -> None:
    """Each package reads what the other one writes, over many values that its own schema admits."""
    there = pair(case, written)
    findings = there.comparison().findings
    for carrier, names in shared_messages(there):
        for way, back in ((there, False), (there.reversed(), True)):
            predicted = expected(findings, *carrier, back=back)
            seen = observed(way, (names[1], names[0]) if back else names, packages)
            assert seen is predicted, (carrier, "new to old" if back else "old to new")


def test_a_default_that_changed_is_put_in_by_readers(written: Written, packages: Packages) -> None:
    """Messages cannot prove this verdict: packages always send properties with a default."""
    case = next(case for case in CASES if case.rule == "field-default-changed")
    old, new = (packages(written(schema)) for schema in (case.old, case.new))
    assert (old.decode(old.AskRequest, {}).x, new.decode(new.AskRequest, {}).x) == (False, True)


def test_an_exclusion_refuses_what_others_may_send(written: Written, packages: Packages) -> None:
    case = next(case for case in CASES if case.rule == "type-rejection-changed")
    old, new = (packages(written(schema)) for schema in (case.old, case.new))
    assert old.decode(old.Item, {"kind": "k"}).kind == "k"
    assert new.decode(new.Item, {"other": 1}) == new.Item()
    for package, raw in ((new, {"kind": "k"}), (old, {"other": 1})):
        with pytest.raises(package.DecodeError):
            package.decode(package.Item, raw)


def test_another_order_reads_the_same_value_as_another_member(written: Written, packages: Packages) -> None:
    case = next(case for case in CASES if str(case) == "union-order-changed")
    old, new = (packages(written(schema)) for schema in (case.old, case.new))
    kinds = [type(package.decode(package.AskRequest, {"x": {"a": "t"}}).x).__name__ for package in (old, new)]
    assert kinds == ["P", "Q"]


@pytest.mark.parametrize("case", [case for case in CASES if case.rule in ROUTING], ids=str)
def test_methods_that_one_side_lacks_are_not_routed(case: Case, written: Written, packages: Packages) -> None:
    old, new = (packages(written(schema)) for schema in (case.old, case.new))
    for sender, (old_to_new, new_to_old) in case.wire.items():
        for caller, reader, verdict in ((old, new, old_to_new), (new, old, new_to_old)):
            handler = "Agent" if sender == "client" else "Client"
            unknown = routes(caller, handler) - routes(reader, handler)
            assert bool(unknown) is (verdict != "ok")
            is_request = unknown <= set(getattr(caller, handler).REQUESTS)
            assert verdict == ("ok" if not unknown else "breaks" if is_request else "loses")


def routes(package: ModuleType, handler: str) -> set[str]:
    base = getattr(package, handler)
    return {*base.REQUESTS, *base.NOTIFICATIONS}


@EVERY
def test_source_verdicts_are_what_becomes_of_code(case: Case, written: Written, packages: Packages) -> None:
    """Imports and calls of constructors, as far as they fail without a type checker."""
    there = pair(case, written)
    findings = there.comparison().findings
    old, new = there.old.package(packages), there.new.package(packages)
    gone = set(old.__all__) - set(new.__all__)
    assert bool(gone) is any(
        Use.IMPORT in each.source.uses and each.source.verdict is SourceVerdict.BREAKS for each in findings
    )
    broken = {
        each.place.type
        for each in findings
        if Use.CONSTRUCT in each.source.uses and each.source.verdict is SourceVerdict.BREAKS
    }
    for name in {*old.__all__} & {*new.__all__}:
        kinds = [getattr(package, name) for package in (old, new)]
        if all(
            inspect.isclass(kind) and issubclass(kind, package.Struct)
            for kind, package in zip(kinds, (old, new), strict=True)
        ):
            assert still_calls(*kinds) or name in broken, name


def test_methods_of_other_words_are_renamed_only_with_both_types(written: Written) -> None:
    findings = pair_of(written(asking_twice()), written(ANNOUNCING)).comparison().findings
    assert {each.rule.id for each in findings} == {"method-added", "method-removed", "type-added", "type-removed"}


def test_a_method_with_two_possible_new_names_is_removed(written: Written) -> None:
    new = asking(
        thing(),
        OnceRequest=message("once/tell", thing(t=TEXT)),
        OnceResponse=message("once/tell", thing()),
        TwiceRequest=message("twice/tell", thing(t=TEXT)),
        TwiceResponse=message("twice/tell", thing()),
    )
    findings = pair_of(written(asking_twice()), written(new)).comparison().findings
    assert {each.rule.id for each in findings} == {"method-added", "method-removed", "type-added", "type-removed"}


@pytest.mark.parametrize(
    ("names", "renamed"),
    [(("a",), True), (("a", "b"), True), (("c",), False), ((), False)],
    ids=["a", "ab", "c", "none"],
)
def test_the_last_member_of_a_union_is_renamed_if_it_is_alike(
    names: tuple[str, ...], renamed: bool, written: Written
) -> None:
    """One class must have all properties of the other."""
    old, new = (
        holding(one_of({**thing(each, **dict.fromkeys(each, TEXT)), "title": title}, WHOLE))
        for each, title in ((("a",), "first"), (names, "second"))
    )
    findings = pair_of(written(old), written(new)).comparison().findings
    assert [each.place.type for each in findings if each.rule.id == "type-renamed"] == ["ItemSecond"] * renamed
    assert ("type-removed" in {each.rule.id for each in findings}) is not renamed


# --- The table ------------------------------------------------------------------------------------------------------

GATE_RULES = {f"{what}-gate-{how}" for what in ("method", "value") for how in ("added", "removed", "changed")}
PACKAGE_RULES = {f"{what}-{how}" for what in ("part", "protocol", "subpackage") for how in ("added", "removed")}


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} | GATE_RULES | PACKAGE_RULES == RULES.keys()


def test_every_rule_has_its_reverse_and_its_reasons() -> None:
    for rule in RULES.values():
        assert RULES[rule.reverse].reverse == rule.id
        assert all((rule.meaning, rule.wire, rule.source))


# --- What is said ---------------------------------------------------------------------------------------------------


def test_a_class_that_became_a_union_says_what_to_construct(written: Written) -> None:
    case = next(case for case in CASES if str(case) == "type-kind-changed-by-what-a-property-says")
    (found,) = [each for each in pair(case, written).comparison().findings if each.rule.id == case.rule]
    assert found.message.startswith("is a union (ItemA | ItemB | ItemOther | ItemNone) now")


def test_the_first_line_says_what_to_act_on(written: Written) -> None:
    case = next(case for case in CASES if str(case) == "type-kind-changed-another-name-that-lacks-something")
    assert headline(summary(pair(case, written).comparison())) == "1 breaking, 0 to look at, 1 other"
