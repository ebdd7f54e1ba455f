"""Packages that stand in for libraries which cannot be had without their hardware."""
