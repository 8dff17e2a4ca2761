"""The reproduction of the paper on data distribution shifts (arXiv 2409.13875)."""
