"""NVIDIA's management library as it answered on machines of several kinds, for machines that have none."""

from __future__ import annotations

import types

import pynvml


class Board:
    """What one recorded accelerator answers, by NVML function; a function that is not here has no answer."""

    def __init__(self, uuid, **answers):
        self.uuid = uuid
        self.answers = answers


H200 = {
    "nvmlDeviceGetName": "NVIDIA H200",
    "nvmlDeviceGetMemoryInfo": types.SimpleNamespace(total=150_754_820_096, used=0),
    "nvmlDeviceGetMaxClockInfo": 1980,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetMigMode": [0, 0],
}


class Driver(types.ModuleType):
    """A module with the names of pynvml and recorded answers."""

    def __init__(self, boards, init_error=None):
        super().__init__("recorded_nvml")
        self.init_error = init_error
        self.nvmlShutdown = lambda: None
        self.nvmlDeviceGetCount = lambda: len(boards)
        self.nvmlDeviceGetHandleByIndex = lambda i: boards[i]
        self.nvmlDeviceGetUUID = lambda board: board.uuid
        self.nvmlDeviceGetNvLinkState = lambda board, link: int(link < board.answers.get("links", 0))
        self.nvmlDeviceGetNvLinkVersion = lambda board, link: board.answers["version"]
        self.nvmlSystemGetDriverVersion = lambda: "580.67"
        self.nvmlSystemGetCudaDriverVersion = lambda: 13010
        vars(self).update(
            {
                k: v
                for k, v in vars(pynvml).items()
                if k.startswith(("NVML_", "NVMLError", "nvmlClocks", "nvmlMemory_", "c_nvmlGpuFabric"))
            }
        )

    def nvmlInit(self):  # noqa: N802 - NVML's name
        if self.init_error is not None:
            raise pynvml.NVMLError(self.init_error)

    def __getattr__(self, name):
        if not name.startswith("nvmlDeviceGet"):
            raise AttributeError(name)

        def function(board, *arguments):
            if name not in board.answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            answer = board.answers[name]
            return answer(*arguments) if callable(answer) else answer

        return function
