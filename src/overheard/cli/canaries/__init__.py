"""The command `canaries`."""
