"""Statistics over arrays: estimates with intervals, ranks, matches."""
