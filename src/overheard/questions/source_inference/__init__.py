"""The question which client holds a record."""
