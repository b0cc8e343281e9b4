"""Accounts and records in, figures out."""
