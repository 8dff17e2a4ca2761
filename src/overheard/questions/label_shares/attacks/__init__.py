"""Attacks: a view in, claims out; one a file."""
