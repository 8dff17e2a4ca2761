"""What sums over varying cohorts reveal, computed from who took part in which round alone."""
