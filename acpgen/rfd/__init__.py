"""Drafts of extension fragments from the text of RFDs: text in, a draft and what was not understood out.

Nothing here writes or prints. The text is untrusted: it has bounds, and never becomes code.
"""

from acpgen.rfd.base import Base
from acpgen.rfd.checking import check_draft
from acpgen.rfd.draft import Extraction, extract
from acpgen.rfd.source import Source, parse_source, read_source

__all__ = ["Base", "Extraction", "Source", "check_draft", "extract", "parse_source", "read_source"]
