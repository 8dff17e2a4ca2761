"""Networks and classifiers that attackers fit to their observations."""
