"""Adapters to other libraries, one file each; a library is imported only when its adapter is used."""
