"""One attack a file; a view in, claims out."""
