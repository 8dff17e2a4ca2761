"""The question of the label shares of each client."""
