"""one_logit: A Flower app."""
