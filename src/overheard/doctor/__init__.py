"""Checks of differential privacy: rules that look at a run, its recording or its code."""
