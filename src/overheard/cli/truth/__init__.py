"""The command `truth`."""
