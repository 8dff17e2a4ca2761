"""Data sets, splits and partitions."""
