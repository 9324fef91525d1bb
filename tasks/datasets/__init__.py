"""Readers of published data sets: one file a set, from its published files to examples."""
