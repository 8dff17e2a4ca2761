"""Planted runs, leaking or leak-free, small enough to attack within a second."""
