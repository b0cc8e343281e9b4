"""Recipes as TOML: the paper's settings, ours and the rivals'. Each holds what differs from the defaults."""
