"""FLiP: what a federation is worth that shares distilled data, and what it gives away."""
