"""Fixtures: hand-made audits for tests of reports."""

from tests.runs.audits import rich, small

__all__ = ["rich", "small"]
