"""Neutral building blocks."""
