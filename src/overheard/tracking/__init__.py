"""Logs audits to experiment trackers: MLflow, and Weights & Biases."""
