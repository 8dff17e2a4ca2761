"""Findings to json, csv and html; draws, decides nothing."""
