"""gpt-oss-120b: reasoning and summarisation; the harness sends token ids and gets token ids."""
