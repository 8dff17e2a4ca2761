"""The algorithms of a federation, one per file."""
