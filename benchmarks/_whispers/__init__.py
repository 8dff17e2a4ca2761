"""Parts of the benchmark that searches for the setting of the Whispers paper."""
