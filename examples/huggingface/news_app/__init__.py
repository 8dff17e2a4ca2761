"""A Flower app that fine-tunes a text classifier with LoRA; one line records the run."""
