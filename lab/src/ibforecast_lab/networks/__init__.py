"""Variants of our network: with a part removed, and with factors."""
