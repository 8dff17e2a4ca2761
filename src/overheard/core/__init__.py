"""The vocabulary and the contracts; no training, no files, no printing."""
