"""Whole federations that an attacker simulates from its auxiliary examples."""
