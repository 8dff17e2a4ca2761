"""Findings of an audit, their summaries, and the format in which they are stored."""
