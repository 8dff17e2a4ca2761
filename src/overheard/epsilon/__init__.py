"""Epsilon as stated, as recomputed, and as lower bounds from attacks."""
