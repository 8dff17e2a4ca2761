"""Attacks on this question, one per file."""
