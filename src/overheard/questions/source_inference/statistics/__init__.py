"""Statistics over runs from findings on this question."""
