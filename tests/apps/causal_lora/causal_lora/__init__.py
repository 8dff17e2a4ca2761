"""causal_lora: A Flower app."""
