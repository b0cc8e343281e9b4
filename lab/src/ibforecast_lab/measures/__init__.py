"""Measures that only experiments need: cost, recovery, what choosing is worth, and reactions to unread values."""
