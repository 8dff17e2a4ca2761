"""Distillation methods, one per file."""
