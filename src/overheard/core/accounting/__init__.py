"""What accountants say that a noise mechanism spends."""
