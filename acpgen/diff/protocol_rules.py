"""Rules about packages of several protocols, and about the parts of a protocol that are neither methods nor types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum

from acpgen.diff.findings import FINE, ChangePlace, Effect, Found, Use, WireVerdict, breaks, risks
from acpgen.diff.rules import IMPORT, MODELS, NO_MESSAGES, ModelPair, RuleTable
from acpgen.ir import model as ir
from acpgen.roles import Side


class Home(Enum):
    """The place of a protocol in a package."""

    NOWHERE = "nowhere"
    ROOT = "root"
    SUBPACKAGE = "subpackage"


PACKAGES = RuleTable[int, Home, Home]()
"""Rules about the place of a protocol in two packages."""
PARTS = RuleTable[str, bool, bool]()
"""Rules about a part, which two packages have or have not."""

_OTHER_PATH = "breaks: they have another path (import)"


# --- Packages -------------------------------------------------------------------------------------------------------


@PACKAGES.pair(
    ("protocol-added", "the package has one more version of the protocol", "ok: one more subpackage"),
    ("protocol-removed", "the package has no such version of the protocol any more", "breaks: its subpackage is gone"),
    wire="none: peers negotiate a version that both have",
)
def _protocol(protocol: int, before: Home, after: Home) -> Iterator[Found]:
    if before is Home.NOWHERE:
        yield Found(ChangePlace(), f"protocol {protocol}: only in NEW")
    if after is Home.NOWHERE:
        message = f"protocol {protocol}: only in OLD"
        yield Found(ChangePlace(), message, source=breaks(Use.IMPORT), is_reverse=True)


@PACKAGES.pair(
    ("subpackage-added", "the names moved into a subpackage for the version", _OTHER_PATH),
    ("subpackage-removed", "the names moved out of the subpackage", _OTHER_PATH),
    wire=NO_MESSAGES,
)
def _subpackage(protocol: int, before: Home, after: Home) -> Iterator[Found]:
    if before is not after and Home.NOWHERE not in (before, after):
        is_gone = after is Home.ROOT
        where = f"{'no longer' if is_gone else 'now'} in the subpackage v{protocol}"
        message = f"the names of protocol {protocol} are {where}"
        yield Found(ChangePlace(), message, source=breaks(Use.IMPORT), is_reverse=is_gone)


@PARTS.pair(
    ("part-added", "the package has one more part", "ok: more helpers or modules"),
    ("part-removed", "the package has a part no more", "breaks: its helpers and modules are gone"),
    wire=NO_MESSAGES,
)
def _part(name: str, before: bool, after: bool) -> Iterator[Found]:
    if after and not before:
        yield Found(ChangePlace(), f"the part {name!r}: only in NEW")
    if before and not after:
        yield Found(ChangePlace(), f"the part {name!r}: only in OLD", source=breaks(Use.IMPORT), is_reverse=True)


# --- Protocols --------------------------------------------------------------------------------------------------------


@MODELS.rule(
    "protocol-changed",
    "the version of the protocol differs",
    wire="breaks both ways: peers negotiate the version first, and have none in common",
    source="risk: PROTOCOL_VERSION is another number",
)
def _protocol_changed(models: ModelPair) -> Iterator[Found]:
    if models.old.protocol != models.new.protocol:
        message = f"the protocol has version {models.new.protocol} now; before: {models.old.protocol}"
        yield Found(ChangePlace(), message, Effect(WireVerdict.BREAKS, WireVerdict.BREAKS), risks(Use.IMPORT)).sent_by(
            Side
        )


@MODELS.pair(
    ("null-ids-added", "request ids may be null", "ok"),
    ("null-ids-removed", "request ids may no longer be null", "ok"),
    wire="new to old breaks: refused by old readers",
)
def _null_ids(models: ModelPair) -> Iterator[Found]:
    before, after = models.old.envelope.null_ids, models.new.envelope.null_ids
    if before is not after:
        effect = Effect(*(WireVerdict.OK if admits else WireVerdict.BREAKS for admits in (after, before)))
        message = f"requests whose id is null are {'allowed now' if after else 'no longer allowed'}"
        yield Found(ChangePlace(), message, effect, is_reverse=before).sent_by(Side)


@MODELS.pair(
    ("null-error-ids-added", "ids of errors may be null", "ok"),
    ("null-error-ids-removed", "ids of errors may no longer be null", "ok"),
    wire="ok: no request waits for such an error",
)
def _null_error_ids(models: ModelPair) -> Iterator[Found]:
    before, after = models.old.envelope.null_error_ids, models.new.envelope.null_error_ids
    if before is not after:
        # the runtime reads errors without an id in any case
        message = f"errors whose id is null are {'allowed now' if after else 'no longer allowed'}"
        yield Found(ChangePlace(), message, FINE, is_reverse=before).sent_by(Side)


# --- Error codes ----------------------------------------------------------------------------------------------------


@MODELS.pair(
    ("error-code-added", "an error code has a name now", "ok: a new exception class"),
    ("error-code-removed", "an error code has no name any more", IMPORT),
    wire="ok: all codes are read",
)
def _error_code(models: ModelPair) -> Iterator[Found]:
    before, after = _error_names(models.old), _error_names(models.new)
    for code in after.keys() - before.keys():
        yield Found(ChangePlace(member=f"error {code}"), f"has a name now: {after[code]}")
    for code in before.keys() - after.keys():
        message, source = f"has no name any more; before: {before[code]}", breaks(Use.IMPORT)
        yield Found(ChangePlace(member=f"error {code}"), message, source=source, is_reverse=True)


@MODELS.rule("error-code-renamed", "an error code has another name", wire="ok: only the code is sent", source=IMPORT)
def _error_code_renamed(models: ModelPair) -> Iterator[Found]:
    names = _error_names(models.new)
    for code, name in _error_names(models.old).items():
        if names.get(code, name) != name:
            place = ChangePlace(member=f"error {code}", was=name)
            yield Found(place, f"is named {names[code]} now; before: {name}", source=breaks(Use.IMPORT))


def _error_names(model: ir.Model) -> Mapping[int, str]:
    return {each.code: each.name for each in model.errors.codes}
