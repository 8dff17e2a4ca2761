"""The question of the words that a client used."""
