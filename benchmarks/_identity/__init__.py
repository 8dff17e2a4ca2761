"""Parts of the benchmark on identity."""
