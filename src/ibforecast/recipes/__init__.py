"""Recipes as TOML files: what differs from the defaults."""
