"""Compare two models: what changed, whether peers still understand each other, and whether code still runs.

`compare` (in `compare`) takes two models and gives a `Comparison`; it reads nothing and prints nothing. `rules` is the
table of everything that can be found. `text`, `markdown` and `data` print a comparison.
"""
