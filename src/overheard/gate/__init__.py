"""Checks the findings of an audit against a policy, as a gate in a pipeline."""
