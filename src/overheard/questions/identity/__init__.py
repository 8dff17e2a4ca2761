"""Which known user sent an update."""
