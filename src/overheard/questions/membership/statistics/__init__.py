"""What findings of this question add up to over runs."""
