"""From a plan to finished records: engines, canaries, warm-up, legs, verdicts."""
