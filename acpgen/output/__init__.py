"""The last two stages of the pipeline: compare the generated files with the disk, and write the difference.

`plan` only reads. `apply` does what a plan says. `check`, `diff` and `--dry-run` make a plan and never apply it.
"""

from acpgen.files import STAGE_PREFIX
from acpgen.output.apply import apply
from acpgen.output.folder import LOCK_NAME, check_writable
from acpgen.output.manifest import Manifest, read_manifest, unchanged, usable_manifest
from acpgen.output.plan import Change, ChangeKind, OutputPlan, plan

__all__ = [
    "LOCK_NAME",
    "STAGE_PREFIX",
    "Change",
    "ChangeKind",
    "Manifest",
    "OutputPlan",
    "apply",
    "check_writable",
    "plan",
    "read_manifest",
    "unchanged",
    "usable_manifest",
]
