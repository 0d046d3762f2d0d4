"""All that is known of one name: what the package has for it, what the schema says, and who needs it.

The way: `lookup` finds what a name stands for, `describe` makes an `Entry` of it, `text` and `data` print that.
"""
