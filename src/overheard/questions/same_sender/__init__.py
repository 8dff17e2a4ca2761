"""Which updates are of one sender."""
