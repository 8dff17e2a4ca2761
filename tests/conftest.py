"""Fixtures: hand-made audits for tests of reports."""

from tests.worlds.audits import rich, small

__all__ = ["rich", "small"]
