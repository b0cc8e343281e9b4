"""Accounts and records in, figures out; nothing is computed here."""
