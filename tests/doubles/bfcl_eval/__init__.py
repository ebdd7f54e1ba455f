"""As much of bfcl-eval as the driver imports, and modules that must not be imported: see tests/benchmarks."""
