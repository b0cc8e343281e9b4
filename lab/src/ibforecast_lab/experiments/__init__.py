"""Cells in, records out: every published number and how it came about."""
