"""Measures what a federated-learning run gives away, and which defenses take that away."""
