"""The rules on recordings and plans, each in a file of its own."""
