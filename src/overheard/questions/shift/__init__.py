"""The question whether, when and how a client's data changed."""
