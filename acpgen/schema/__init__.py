"""Read schemas and fragments, and compose them."""
