"""The command line interface; the only package that prints."""
