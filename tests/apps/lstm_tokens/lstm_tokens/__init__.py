"""lstm_tokens: A Flower app."""
