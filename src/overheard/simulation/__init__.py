"""The attacker's simulation: virtual clients, trained on auxiliary examples and probed."""
