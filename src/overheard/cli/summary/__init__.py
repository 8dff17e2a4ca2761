"""What the terminal says at the end of an audit: the first page of its report, in short."""
