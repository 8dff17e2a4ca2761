"""What an audit found, and the one form in which it is stored."""
