"""The static reference of composed protocols: one HTML page, which loads nothing, for `acpgen docs`."""
