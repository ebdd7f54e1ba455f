"""Servers that the harness starts itself: what is run, how it is watched, and how nothing of it is left behind."""
