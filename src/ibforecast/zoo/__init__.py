"""Recipes by name, and saved models."""
