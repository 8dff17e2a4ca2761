"""One architecture a file."""
