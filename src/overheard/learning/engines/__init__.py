"""Ways to train many clients at once, all to the same result."""
