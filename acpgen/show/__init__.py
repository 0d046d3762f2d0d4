"""Show everything about one name: its declaration in the package, its schema, its users and its origin.

`describe` finds the meanings of a name and describes each as data; `display` prints these.
"""
