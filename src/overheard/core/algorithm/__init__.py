"""The contract of an algorithm, and the view of an attacker that knows the algorithm."""
