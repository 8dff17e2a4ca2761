"""regression: A Flower app."""
