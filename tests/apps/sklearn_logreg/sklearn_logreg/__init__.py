"""sklearn_logreg: A Flower app."""
