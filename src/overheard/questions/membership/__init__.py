"""Which records a client trained on."""
