"""Fidelity, shown by means of its own: values made from the schema, an independent validator, and mutations."""
