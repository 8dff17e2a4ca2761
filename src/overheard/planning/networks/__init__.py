"""Which network a recording is of, and what that network shows of its task."""
