"""The reproduction of PROLIN: membership of single clients from sums (arXiv 2303.03908)."""
