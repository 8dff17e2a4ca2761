"""Facts that are true of a run and that several questions read."""
