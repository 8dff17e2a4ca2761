"""Holds claims against the ground truth."""
