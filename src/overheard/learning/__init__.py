"""Trains models, many clients at once."""
