"""Measures that only experiments need: cost, recovery of a known truth, and the value of choosing tokens per window."""
