"""Rows of findings on differential privacy: epsilon, its bounds, canary clients, faults."""
