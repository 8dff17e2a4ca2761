"""Which examples the clients, the attacker and the test set get."""
