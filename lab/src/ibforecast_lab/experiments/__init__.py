"""Experiments: run cells, record the results, and build tables and figures from the records."""
