"""Readers of data files; no file is trusted."""
