"""Parts of the reproduction of Gradient-Leaks, on deanonymisation (arXiv 1805.05838)."""
