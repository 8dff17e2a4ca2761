"""Partition of a data set among clients, attacker and test set."""
