"""The benchmark data sets, generated ones with a known truth, and stand-ins for the largest."""
