"""Few synthetic examples that teach what many real ones do."""
