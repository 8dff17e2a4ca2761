"""What runs in the app of a client, so that recordings can state more of it."""
