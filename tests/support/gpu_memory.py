"""Which processes hold memory of a GPU, and how much those of one test; others use it too."""

import importlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def own_gpu_bytes(uuid: str) -> int:
    """Return the device memory of this process and of all that descend from it."""
    nvml = _nvml()
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid)
    ours = _descendants(os.getpid())
    running = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return sum(process.usedGpuMemory for process in running if process.pid in ours)


def pids_on_gpus() -> frozenset[int]:
    """Return the processes of this machine that have a CUDA context."""
    nvml = _nvml()
    handles = map(nvml.nvmlDeviceGetHandleByIndex, range(nvml.nvmlDeviceGetCount()))
    return frozenset(
        process.pid
        for handle in handles
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
    )


def _nvml() -> Any:
    nvml: Any = importlib.import_module("pynvml")
    nvml.nvmlInit()
    return nvml


def _descendants(ancestor: int) -> set[int]:
    parents: dict[int, int] = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
    found = {ancestor}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found
