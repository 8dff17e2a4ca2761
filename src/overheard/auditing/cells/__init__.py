"""Cells: what one attack finds about its targets in some rounds of one run."""
