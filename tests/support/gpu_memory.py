"""How much of a GPU's memory the processes of one test hold; other tests use the GPU too."""

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def own_gpu_bytes(uuid: str) -> int:
    """Return the device memory of this process and of all that descend from it."""
    nvml: Any = importlib.import_module("pynvml")
    nvml.nvmlInit()
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    ours = _descendants(os.getpid())
    running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return sum(process.usedGpuMemory for process in running if process.pid in ours)


def _descendants(ancestor: int) -> set[int]:
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found
