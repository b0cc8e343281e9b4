"""Figures of explanations."""
