"""Whether, when and which way a client's data changed."""
