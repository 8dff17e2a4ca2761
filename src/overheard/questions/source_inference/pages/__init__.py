"""Sentences, tables and figures of this question in a report."""
