"""Types for other libraries: datamodel-code-generator renders them, from a plain schema written from the model."""
