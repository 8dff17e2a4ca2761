"""What sums over cohorts that vary reveal of single clients, measured."""
