"""Tests marked `gpu` are skipped where there is no NVIDIA GPU, with what is missing."""

import ctypes
from functools import lru_cache
from pathlib import Path

import pytest

_CONTROL_DEVICES = ("/dev/nvidiactl", "/dev/dxg")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU, unless there is one."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _missing() if marked else None
    if reason is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@lru_cache
def _missing() -> str | None:
    """Return why no GPU can be used; None if one can. NVML creates no CUDA context."""
    if not any(Path(device).exists() for device in _CONTROL_DEVICES):
        return "no NVIDIA driver is loaded"
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "libnvidia-ml.so.1, a part of the NVIDIA driver, is not found"
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != 0:
        return "NVML does not start"
    status = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    nvml.nvmlShutdown()
    return None if status == 0 and count.value > 0 else "NVML sees no GPU"
