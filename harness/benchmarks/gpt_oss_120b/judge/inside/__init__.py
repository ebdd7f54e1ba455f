"""The programs that run apart from the harness; nothing here is imported by it, and nothing of it by them."""
