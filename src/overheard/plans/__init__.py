"""Plans of audits, and how they are read."""
