"""Networks and classifiers that attackers fit to what they read."""
