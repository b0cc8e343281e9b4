"""Attacks on the library: kills, broken disks, malformed files, hostile clients: `make torture`."""
