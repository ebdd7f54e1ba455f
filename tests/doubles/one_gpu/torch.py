"""As much of torch as says that there is a GPU, for processes that have TensorRT-LLM's double."""

from types import SimpleNamespace

__version__ = "0.0.0+double"
version = SimpleNamespace(cuda="13.0")
cuda = SimpleNamespace(device_count=lambda: 1)
