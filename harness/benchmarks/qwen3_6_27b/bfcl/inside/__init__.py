"""What runs in the environment of bfcl-eval, and imports nothing of this package."""
