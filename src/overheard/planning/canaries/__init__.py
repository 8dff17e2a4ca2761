"""Plans of canaries, before a run is recorded."""
