"""The JSON schema of plans: every key with its description, range, default and an example."""
