"""A run so small that its truth is known by heart."""
