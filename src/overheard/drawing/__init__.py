"""Charts, tables and sentences of a report."""
