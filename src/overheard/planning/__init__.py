"""What comes before an audit: a first plan, and what a plan will run, refuse and cost."""
