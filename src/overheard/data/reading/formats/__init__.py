"""Readers of further forms of data: cells between blanks, LEAF, folders of images."""
