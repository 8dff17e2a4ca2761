"""fedper: A Flower app."""
