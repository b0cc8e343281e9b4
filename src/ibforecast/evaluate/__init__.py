"""Measures: pure functions that return one value per window."""
