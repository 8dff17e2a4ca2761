"""vit_lora: A Flower app."""
