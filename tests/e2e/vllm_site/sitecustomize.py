"""For vLLM's processes on a machine without a GPU: lets PyPI's torchvision be imported beside a torch without CUDA.

Its compiled operators are another torch's. Two of them are registered for shapes when it is imported, which fails
where they are not defined; nothing that prepares an image calls them. Python imports this module by itself where its
folder is on PYTHONPATH.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

KEPT: list[Any] = []
"""What is defined is so for as long as its library is there."""


class BeforeTorchvision(importlib.abc.MetaPathFinder):
    """Finds nothing; defines the operators when torchvision is looked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "torchvision":
            sys.meta_path.remove(self)
            import torch

            library = torch.library.Library("torchvision", "DEF")
            for name in ("nms", "qnms"):
                library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
            KEPT.append(library)
        return None


sys.meta_path.insert(0, BeforeTorchvision())
