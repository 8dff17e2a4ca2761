"""Reproductions of the papers' tables and figures, compared with the published values."""
