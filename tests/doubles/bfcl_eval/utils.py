"""What the real module needs is not installed, or it makes folders: whoever imports it learns so."""

raise RuntimeError(f"{__name__} was imported")
