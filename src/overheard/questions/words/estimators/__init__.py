"""Estimators used only by the attacks of this question."""
