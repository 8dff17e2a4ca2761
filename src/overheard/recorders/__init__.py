"""Recorders of runs that other frameworks make; each framework is an extra."""
