"""Which attribute the person behind a sender has."""
