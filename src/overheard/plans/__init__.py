"""What to audit, as a plan says it."""
