"""The question: how the numbers to predict are distributed among a client's examples."""
