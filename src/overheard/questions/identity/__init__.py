"""The question which known user sent an update."""
