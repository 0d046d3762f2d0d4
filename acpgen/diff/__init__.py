"""Compare two models: their differences, the effect on messages between old and new peers, and the effect on code.

`compare` takes two models and returns a `Comparison`; it does no input or output. The modules `*_rules` have the kinds
of findings, `report` groups and sums them up, and `formats` prints them.
"""
