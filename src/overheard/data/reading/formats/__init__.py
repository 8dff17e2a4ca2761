"""Readers of further forms of data: cells between blanks, LEAF, images, saved datasets."""
