"""The last two stages of the compiler: compare the generated files with the disk, then write what differs.

`plan` only reads and `apply` only does what a plan says, so that `check`, `diff` and `--dry-run` are a plan which is
never applied. Only `apply`, and for a single file `write_file`, write; what they need is imported when one is used.
"""

from typing import TYPE_CHECKING

from acpgen.output.manifest import Manifest, read_manifest, unchanged, usable_manifest
from acpgen.output.paths import LOCK_NAME, STAGE_PREFIX
from acpgen.output.plan import Change, Kind, Plan, plan

if TYPE_CHECKING:
    from acpgen.output.applying import apply, check_writable, write_file

__all__ = [
    "LOCK_NAME",
    "STAGE_PREFIX",
    "Change",
    "Kind",
    "Manifest",
    "Plan",
    "apply",
    "check_writable",
    "plan",
    "read_manifest",
    "unchanged",
    "usable_manifest",
    "write_file",
]


def __getattr__(name: str) -> object:
    """`apply` and its like; raises `AttributeError` for what is not there."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from acpgen.output import applying

    return getattr(applying, name)
