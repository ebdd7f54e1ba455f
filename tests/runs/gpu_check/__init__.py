"""The check for a machine with a GPU, on one without."""
