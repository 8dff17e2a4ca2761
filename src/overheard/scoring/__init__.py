"""One question a file: holds claims against the ground truth."""
