"""Runs an app in a simulation, in a process of its own, and records it."""
