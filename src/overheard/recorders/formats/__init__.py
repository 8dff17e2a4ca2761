"""Formats in which frameworks save runs: one file for each. The file's name is its name."""
