"""Judging: claims are held against the truth, and findings become verdicts."""
