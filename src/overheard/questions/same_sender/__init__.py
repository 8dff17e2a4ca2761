"""The question of which updates come from the same sender."""
