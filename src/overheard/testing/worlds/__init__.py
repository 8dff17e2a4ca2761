"""Runs in which an answer leaks, or nothing does, small enough to be heard in a second."""
