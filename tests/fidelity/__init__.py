"""Fidelity, shown independently of acpgen: values made from the schema, an independent validator, and mutations."""
