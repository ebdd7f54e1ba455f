"""qwen3.6-27b, the agentic benchmark: recorded trajectories, replayed turn by turn, and BFCL for accuracy."""
