"""The rules on source code, each in a file of its own."""
