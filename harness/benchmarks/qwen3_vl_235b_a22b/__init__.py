"""Qwen3-VL-235B-A22B on a product catalogue: a picture and text in, a small JSON object out."""
