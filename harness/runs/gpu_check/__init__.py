"""The check for a machine with a GPU: what no machine without one can show, asked in one command of a few minutes."""
