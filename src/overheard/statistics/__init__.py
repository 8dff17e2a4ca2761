"""Statistics over arrays: estimates with confidence intervals, ROC curves and ranks."""
