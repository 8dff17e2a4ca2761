"""Charts and tables of a report."""
