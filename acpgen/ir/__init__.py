"""What a schema means, independent of how it is written and of how it will be printed."""
