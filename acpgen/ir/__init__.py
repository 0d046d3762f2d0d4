"""The intermediate representation of a schema, and the lowering that makes it."""
