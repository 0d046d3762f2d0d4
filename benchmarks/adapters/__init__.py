"""The conversation of the tests of examples/frameworks/ with published adapters for the same frameworks."""
