"""Report pages on the distribution of numbers to predict."""
