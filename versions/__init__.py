"""Which versions of Python and of frameworks Overheard works with, and how that is tried."""
