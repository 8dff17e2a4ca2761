"""Who should take part in which round, so that sums reveal little of single clients."""
