"""Charts, tables and sentences for reports."""
