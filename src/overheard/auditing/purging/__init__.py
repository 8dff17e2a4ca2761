"""Removal of messages, claims and caches, on demand and at the end of their retention."""
