"""The one loop: arm x observer x attack x targets."""
