"""Draft extension fragments from the texts of RFDs.

No module here writes or prints. The text is untrusted: it is bounded, and never becomes code.
"""

from importlib.util import find_spec

from acpgen.diagnostics import input_error
from acpgen.rfd.base import Base
from acpgen.rfd.blocks import Source, parse_source, read_source
from acpgen.rfd.draft import Extraction, check_draft, extract

__all__ = ["Base", "Extraction", "Source", "check_draft", "extract", "parse_source", "read_source", "require_parsers"]

_PARSERS = {
    "markdown_it": "markdown-it-py",
    "tree_sitter": "tree-sitter",
    "tree_sitter_typescript": "tree-sitter-typescript",
}


def require_parsers() -> None:
    """Raise `InputError` if a package of the extra `rfd` is missing."""
    missing = [package for module, package in _PARSERS.items() if find_spec(module) is None]
    if missing:
        message = f"acpgen rfd extract needs {', '.join(missing)}"
        raise input_error("rfd-missing", message, hint='pip install "acpgen[rfd]"')
