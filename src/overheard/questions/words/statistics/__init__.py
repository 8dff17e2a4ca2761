"""Statistics of this question's findings over runs."""
