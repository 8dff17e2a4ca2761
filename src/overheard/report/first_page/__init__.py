"""The first page of a report: what a reader needs who reads nothing else."""
