"""How busy GPUs are in NVML's words: the share of time in which a kernel ran on them."""

import importlib
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

_PAUSE_S = 0.25


@dataclass
class GpuUtilization:
    """What was read so far, of all GPUs alike."""

    shares: list[float] = field(default_factory=list[float])

    @property
    def share(self) -> float | None:
        """The mean of all readings; None without any."""
        return mean(self.shares) if self.shares else None


@contextmanager
def read_utilization(gpus: int) -> Generator[GpuUtilization]:
    """Read the utilization of the first GPUs of this machine four times a second inside the `with`.

    Nothing is read where NVML is missing or `CUDA_VISIBLE_DEVICES` says which GPUs are the first.
    """
    found, over = GpuUtilization(), threading.Event()
    devices, nvml = _devices(gpus)
    thread = threading.Thread(target=_read, args=(devices, nvml, found, over), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def _devices(gpus: int) -> tuple[list[Any], Any]:
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [], None
    try:
        nvml: Any = importlib.import_module("pynvml")
        nvml.nvmlInit()
        return [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(gpus)], nvml
    except Exception:  # no such module, driver or GPU: a simulator has no utilization
        return [], None


def _read(devices: list[Any], nvml: Any, found: GpuUtilization, over: threading.Event) -> None:
    while devices and not over.wait(_PAUSE_S):
        for device in devices:
            found.shares.append(nvml.nvmlDeviceGetUtilizationRates(device).gpu / 100)
