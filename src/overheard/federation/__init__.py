"""Simulated federations."""
