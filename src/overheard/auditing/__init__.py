"""Runs an audit: every arm, seed and threat."""
