"""One module per paper; papers are discovered from this package."""
