"""Splits, one per file."""
