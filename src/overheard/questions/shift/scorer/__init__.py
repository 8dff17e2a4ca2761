"""The scorer of claims on this question."""
