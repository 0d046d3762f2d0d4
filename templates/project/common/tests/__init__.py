"""The tests: `python -m unittest`, on the checkout as it is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
