"""One way of sharing out examples a file."""
