"""Virtual clients: trained by the attacker on its own examples, read, and dropped."""
