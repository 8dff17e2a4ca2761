"""What only the attacks of this question estimate with."""
