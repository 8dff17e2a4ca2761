"""Plan in, report out; the only place that prints."""
