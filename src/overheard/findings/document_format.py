"""The format and version of `findings.json`."""

FORMAT = "overheard findings"

VERSION = 1
"""Increased whenever a reader of the previous version would misread a document."""
