"""Estimators that only the attacks on this question use."""
