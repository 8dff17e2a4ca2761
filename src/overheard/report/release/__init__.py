"""What may leave of an audit: no names, and no figures of single clients."""
