"""What replies say: the updates that they mean, and how that is stated."""
