"""Variants of our network: with a part taken out, and with named factors."""
