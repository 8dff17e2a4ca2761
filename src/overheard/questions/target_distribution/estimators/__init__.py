"""Estimators that attacks on the distribution of numbers share."""
