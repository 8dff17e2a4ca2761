"""Local training of many clients, models and their evaluation."""
