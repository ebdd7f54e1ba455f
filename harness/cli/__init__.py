"""The verbs, one module each: parse, call, print. No logic."""
