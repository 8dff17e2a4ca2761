"""The reproduction of FLiP (arXiv 2410.19548): utility and leakage of distilled data."""
