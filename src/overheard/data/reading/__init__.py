"""Reads files of examples, none of which is trusted."""
