"""Defenses, one per file."""
