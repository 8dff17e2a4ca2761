"""What the messages of a recording prove about how they must be read."""
