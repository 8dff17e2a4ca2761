"""Audits of a recording while it grows."""
