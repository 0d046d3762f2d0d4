"""Texts that look like code, made by hypothesis: harmless words among what a writer has to escape."""

from __future__ import annotations

from hypothesis import strategies as st

EFFECT = "__import__('os').environ.setdefault('ACPGEN_HOSTILE_TEXT_WAS_RUN', '1')"
"""Code that leaves a trace where it is run."""

PARTS = (
    *('"', "'", '"""', "'''", '\\"""', "\\", "\\\\", "\\'", "`", '""""', "'''''"),
    *("\n", "\r", "\r\n", "\t", "\f", "\v", "\x00", "\x1b[31m", "\x7f", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff"),
    *("\u202e", "\u2066", "\u2069", "\u200f", "\u200b", "\u00ad", "\U000e0041", "\uffff", "\U0010ffff", "\ue000"),
    *(
        "{{ 7 * 7 }}",
        "{% raw %}",
        "{% endraw %}",
        "{# #}",
        "{{",
        "}}",
        "{x!r}",
        "{",
        "}",
        "{0.__class__}",
        "%s",
        "%(a)s",
    ),
    *("# noqa", "# type: ignore", "# fmt: off", "# fmt: skip", "# pragma: no cover", "# -*- coding: utf-7 -*-"),
    *("\\N{BULLET}", "\\u0041", "\\x41", "\\U0001F600", "\\101", "$(id)", "${HOME}"),
    *(f'"""\n{EFFECT}\n"""', f"'); {EFFECT}; ('", f'"] | {EFFECT} | Literal["', f"\n\n{EFFECT}\n", f"{{{EFFECT}}}"),
    *("ﬁ", "Å", "e\u0301", "ª", "ſ", "名", "😀", "\u0130", "ß", "Ａ"),
    *("class", "None", "__init__", "self", "import os", "lambda: 0", ">>> 1", ":param x:", "*/", "]]>", "- ", "* "),
)
SURROGATES = ("\ud800", "\udfff", "\udc80\ud83d")


def texts() -> st.SearchStrategy[str]:
    """A text of up to six parts, trouble among harmless words; never half of a surrogate pair."""
    anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    part = st.sampled_from(PARTS) | st.sampled_from(("word", "Word", " ", "9", "_", "-")) | anything
    return st.lists(part, min_size=1, max_size=6).map("".join)
