"""Execution of tasks on a Ray cluster, and what its machines must have."""
