"""Data sets, splits and schedules."""
