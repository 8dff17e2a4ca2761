"""The question which records a client trained on."""
