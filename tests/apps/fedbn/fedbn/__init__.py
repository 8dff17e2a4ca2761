"""fedbn: A Flower app."""
