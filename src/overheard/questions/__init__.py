"""What an attacker may ask: one folder a question."""
