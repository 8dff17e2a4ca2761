"""The command `doctor`, and how it shows what it finds."""
