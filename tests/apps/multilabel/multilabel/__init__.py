"""multilabel: A Flower app."""
