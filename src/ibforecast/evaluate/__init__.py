"""Measures: pure functions, one value per window."""
