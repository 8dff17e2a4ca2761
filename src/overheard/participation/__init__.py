"""Sums over varying cohorts: who is in them, and what follows from it."""
