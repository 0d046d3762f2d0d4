"""The last two stages of the compiler: compare the generated files with the disk, then write what differs.

`plan` only reads and `apply` only does what a plan says, so that `check`, `diff` and `--dry-run` are a plan which is
never applied. Only `apply`, and for a single file `write_file`, write.
"""

from acpgen.output.applying import apply, check_writable, write_file
from acpgen.output.manifest import Manifest, read_manifest, unchanged
from acpgen.output.paths import LOCK_NAME, MARKER, STAGE_PREFIX
from acpgen.output.planning import Change, Kind, Plan, plan

__all__ = [
    "LOCK_NAME",
    "MARKER",
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
    "write_file",
]
