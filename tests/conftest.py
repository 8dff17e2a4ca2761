"""Audits made by hand, for whatever lays them out."""

from tests.worlds.audits import rich, small

__all__ = ["rich", "small"]
