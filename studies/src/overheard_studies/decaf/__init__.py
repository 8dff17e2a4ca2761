"""The reproduction of Decaf (arXiv 2405.15316)."""
