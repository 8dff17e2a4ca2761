"""Holds the findings of an audit against a policy, for a pipeline to go on or to stop."""
