"""Ways to distil, one a file."""
