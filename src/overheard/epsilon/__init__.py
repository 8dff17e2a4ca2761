"""Epsilon as claimed, as recomputed, and as attacks prove."""
