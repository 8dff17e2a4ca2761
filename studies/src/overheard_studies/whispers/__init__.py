"""The reproduction of Whispers of Data (arXiv 2504.21436)."""
