"""Pairs of schemas whose methods or protocols differ."""

from __future__ import annotations

from typing import Any

from tests.diff_schemas import (
    TEXT,
    WHOLE,
    Case,
    Schema,
    Verdicts,
    any_of,
    asking,
    client_sends,
    message,
    ref,
    there_and_back,
    thing,
)
from tests.support import schema_of


def asking_twice(*, side: str = "agent", kind: str = "Request") -> Schema:
    """The schema with one method, and another, `tell`."""
    told: dict[str, Any] = {f"Tell{kind}": message("tell", thing(t=TEXT), side)}
    if kind == "Request":
        told["TellResponse"] = message("tell", thing(), side)
    return schema_of(AskRequest=message("ask", thing()), AskResponse=message("ask", thing()), **told)


ANNOUNCING = asking(
    thing(),
    TellRequest=message("announce", thing(t=TEXT)),
    AnnounceResponse=message("announce", thing()),
)
"""The method `tell` under an unrelated name, with a response of another name."""

CALLED = ("call", "handle")

METHODS = [
    *there_and_back(
        Case(
            rule="method-added",
            old=asking(thing()),
            new=asking_twice(),
            place="tell",
            wire=client_sends("ok", "breaks"),
            also=frozenset({"type-added"}),
        ),
        "method-removed",
        source="breaks",
        uses=CALLED,
    ),
    *there_and_back(
        Case(
            rule="method-added",
            variant="notification",
            old=asking(thing()),
            new=asking_twice(side="client", kind="Notification"),
            place="tell",
            wire={"agent": ("ok", "loses")},
            also=frozenset({"type-added"}),
        ),
        "method-removed",
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-added",
        variant="both-sides",
        old=asking(thing()),
        new=asking_twice(side="both"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("ok", "breaks")},
        also=frozenset({"type-added"}),
    ),
    Case(
        rule="method-renamed",
        old=asking_twice(),
        new=asking(
            thing(),
            TellAllRequest=message("all/tell", thing(t=TEXT)),
            TellAllResponse=message("all/tell", thing()),
        ),
        place="all/tell",
        wire=client_sends("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
        also=frozenset({"type-renamed"}),
    ),
    Case(
        rule="method-renamed",
        variant="other-words",
        old=asking_twice(),
        new=asking(thing(), TellRequest=message("announce", thing(t=TEXT)), TellResponse=message("announce", thing())),
        place="announce",
        wire=client_sends("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-renamed",
        variant="other-words-ignored",
        old=asking_twice(kind="Notification"),
        new=asking(thing(), TellNotification=message("announce", thing(t=TEXT))),
        place="announce",
        wire=client_sends("loses", "loses"),
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-side-changed",
        old=asking_twice(side="agent"),
        new=asking_twice(side="client"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("breaks", "ok")},
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-side-changed",
        variant="in-name-only",
        old=asking_twice(side="both"),
        new=asking_twice(side="protocol"),
        place="tell",
        wire={"agent": ("ok", "ok"), "client": ("ok", "ok")},
    ),
    Case(
        rule="method-side-changed",
        variant="one-more",
        old=asking_twice(side="agent"),
        new=asking_twice(side="both"),
        place="tell",
        wire={"agent": ("ok", "breaks"), "client": ("ok", "ok")},
    ),
    Case(
        rule="method-kind-changed",
        old=asking_twice(),
        new=asking_twice(kind="Notification"),
        place="tell",
        wire=client_sends("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
        also=frozenset({"type-removed", "type-renamed"}),
    ),
    Case(
        rule="method-params-changed",
        old=schema_of(
            AskRequest=message("ask", thing(("a",), a=TEXT)),
            AskResponse=message("ask", thing()),
            PleadRequest=thing(("b",), b=TEXT),
            Keeper=thing(one=ref("AskRequest"), two=ref("PleadRequest")),
        ),
        new=schema_of(
            PleadRequest=message("ask", thing(("b",), b=TEXT)),
            AskResponse=message("ask", thing()),
            AskRequest=thing(("a",), a=TEXT),
            Keeper=thing(one=ref("AskRequest"), two=ref("PleadRequest")),
        ),
        place="ask",
        wire=client_sends("breaks", "breaks"),
        source="breaks",
        uses=CALLED,
    ),
    Case(
        rule="method-result-changed",
        old=schema_of(
            AskRequest=message("ask", thing()),
            AskResponse=message("ask", thing(("a",), a=TEXT)),
            PleadResponse=thing(a=TEXT),
        ),
        new=schema_of(
            AskRequest=message("ask", thing()),
            PleadResponse=message("ask", thing(a=TEXT)),
            AskResponse=thing(("a",), a=TEXT),
        ),
        place="ask",
        wire={"agent": ("ok", "breaks")},
        source="breaks",
        uses=CALLED,
    ),
]


def enveloped(*codes: Any, ids: Any = TEXT, error_ids: Any = None) -> Schema:
    """A schema with a JSON-RPC envelope: error codes with titles, the types of ids."""
    code = {"anyOf": [*({"const": number, "title": title} for number, title in codes), WHOLE]}
    answers = any_of(thing(id=ref("Id"), result={}), thing(id=error_ids or TEXT, error=ref("Failure")))
    envelope = {"x-docs-ignore": True, **answers}
    return {
        **asking(
            thing(),
            Id=ids,
            Failure=thing(("code", "message"), code=ref("Code"), message=TEXT, data={}),
            Code=code,
            Envelope=envelope,
        ),
        "anyOf": [ref("Envelope")],
    }


BOTH_WAYS = ("agent", "client")


def _both(old_to_new: str, new_to_old: str) -> Verdicts:
    return dict.fromkeys(BOTH_WAYS, (old_to_new, new_to_old))


PROTOCOL = [
    Case(
        rule="protocol-changed",
        old=asking(thing()),
        new=asking(thing()),
        place="the protocol",
        wire=_both("breaks", "breaks"),
        source="risk",
        uses=("import",),
        protocols=(1, 2),
    ),
    *there_and_back(
        Case(
            rule="null-ids-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), ids={"type": ["string", "null"]}),
            place="the protocol",
            wire=_both("ok", "breaks"),
            also=frozenset({"alias-null-added"}),
        ),
        "null-ids-removed",
        source="ok",
    ),
    *there_and_back(
        Case(
            rule="null-error-ids-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), error_ids={"type": ["string", "null"]}),
            place="the protocol",
            wire=_both("ok", "ok"),
        ),
        "null-error-ids-removed",
        source="ok",
    ),
    *there_and_back(
        Case(
            rule="error-code-added",
            old=enveloped((-1, "Bad luck")),
            new=enveloped((-1, "Bad luck"), (-2, "Worse")),
            place="error -2",
            wire={},
            also=frozenset({"enum-value-added"}),
        ),
        "error-code-removed",
        source="breaks",
        uses=("import",),
    ),
    Case(
        rule="error-code-renamed",
        old=enveloped((-1, "Bad luck")),
        new=enveloped((-1, "Hard luck")),
        place="error -1",
        wire={},
        source="breaks",
        uses=("import",),
        also=frozenset({"documentation"}),
    ),
]
