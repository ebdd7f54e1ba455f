"""The report: what is known of runs or of a tree, gathered once (``content``), then written as a page."""
