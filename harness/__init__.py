"""From a folder of configuration to an MLPerf Inference submission."""

__version__ = "0.1.0"
