"""Recorders for runs of other frameworks, each of which is an optional extra."""
