"""Dossiers."""
