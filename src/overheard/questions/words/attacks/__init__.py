"""Attacks that infer which words a target used."""
