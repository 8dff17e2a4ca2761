"""bert_full: A Flower app."""
