"""Runs a simulated federation."""
