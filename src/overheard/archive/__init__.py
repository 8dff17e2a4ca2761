"""Transcripts and ground truth on disk."""
