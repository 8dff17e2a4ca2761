"""Record and replay: a client's own training step, run with and without one record."""
