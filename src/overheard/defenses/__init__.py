"""One defense a file."""
