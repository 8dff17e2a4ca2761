"""The reproduction of Gradient-Leaks (arXiv 1805.05838)."""
