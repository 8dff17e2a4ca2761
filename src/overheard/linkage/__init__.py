"""Links updates to known users, and to each other."""
