"""Observers that are no parties of a run, and the sizes that the network among them sees."""
