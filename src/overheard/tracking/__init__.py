"""Logs audits to an experiment tracker: MLflow."""
