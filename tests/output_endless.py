"""Builds one package after another into a folder until it is killed: `python -m tests.output_endless FOLDER`."""

import itertools
import sys
from pathlib import Path

from acpgen.output import apply, plan
from tests.output_support import NEW, OLD

for turn in itertools.count():
    apply(plan((NEW, OLD)[turn % 2], folder=Path(sys.argv[1]), head={"turn": turn}))
    if turn == 0:
        print("begun", flush=True)
