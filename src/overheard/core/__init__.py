"""The words and the contracts; no training, no files, no printing."""
