"""Which share of each client's examples bears each label."""
