"""Measures that only experiments need: cost, recovery of a known truth, and the worth of a choice."""
