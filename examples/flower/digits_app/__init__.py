"""A Flower app as it is before anybody thinks of an audit, but for one line of the server."""
