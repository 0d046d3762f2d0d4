"""Schemas and fragments that mean harm: whatever they hold, they give a diagnostic or a package like any other."""
