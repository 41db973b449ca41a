"""Asks the CUDA driver for its devices and prints them as JSON; creates no context.

Runs as a script in a process of its own, so that the caller's process never loads the driver.
CUDA's own numbering is the only right one: CUDA_VISIBLE_DEVICES may name indices, UUIDs and their
prefixes, and without CUDA_DEVICE_ORDER=PCI_BUS_ID the driver counts its fastest GPU first, which
NVML's order (that of the PCI bus) does not show.
"""

import ctypes
import json
import sys
from itertools import pairwise
from typing import Any

# cuda.h, CUdevice_attribute; bytes, kHz and bits.
_ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "sm_count": 16,
    "l2_bytes": 38,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "max_threads_per_sm": 39,
    "max_blocks_per_sm": 106,
    "registers_per_sm": 82,
    "smem_per_sm_bytes": 81,
    "smem_per_block_optin_bytes": 97,
    "reserved_smem_per_block_bytes": 111,
}


class DriverError(Exception):
    """A call that failed: CUDA's name of the error, and its words."""


def list_devices() -> dict[str, Any]:
    """Return what the driver says of itself and of every device that is visible here."""
    cuda = ctypes.CDLL("libcuda.so.1")
    _check(cuda, cuda.cuInit(0))
    version, count = ctypes.c_int(), ctypes.c_int()
    _check(cuda, cuda.cuDriverGetVersion(ctypes.byref(version)))
    _check(cuda, cuda.cuDeviceGetCount(ctypes.byref(count)))
    nvml = _open_nvml()
    return {
        "cuda_version": version.value,
        "driver_version": _driver_version(nvml),
        "devices": [_device(cuda, nvml, ordinal) for ordinal in range(count.value)],
    }


def _device(cuda: ctypes.CDLL, nvml: ctypes.CDLL | None, ordinal: int) -> dict[str, Any]:
    device, size, value = ctypes.c_int(), ctypes.c_size_t(), ctypes.c_int()
    name, raw = ctypes.create_string_buffer(256), ctypes.create_string_buffer(16)
    _check(cuda, cuda.cuDeviceGet(ctypes.byref(device), ordinal))
    _check(cuda, cuda.cuDeviceGetName(name, len(name), device))
    _check(cuda, cuda.cuDeviceGetUuid_v2(raw, device))
    _check(cuda, cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device))
    uuid = _uuid_text(raw.raw)
    fields: dict[str, Any] = {
        "uuid": uuid,
        "name": name.value.decode(errors="replace"),
        "memory_bytes": size.value,
        "is_mig": b" MIG " in name.value or _is_unknown(nvml, uuid),
    }
    for key, attribute in _ATTRIBUTES.items():
        _check(cuda, cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
        fields[key] = value.value
    return fields


def _uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    cuts = (0, 8, 12, 16, 20, 32)
    return "GPU-" + "-".join(digits[a:b] for a, b in pairwise(cuts))


def _open_nvml() -> ctypes.CDLL | None:
    """Return NVML ready for use; None where a container leaves it out."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return nvml if nvml.nvmlInit_v2() == 0 else None


def _driver_version(nvml: ctypes.CDLL | None) -> str | None:
    text = ctypes.create_string_buffer(80)  # NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
    if nvml is None or nvml.nvmlSystemGetDriverVersion(text, len(text)) != 0:
        return None
    return text.value.decode()


def _is_unknown(nvml: ctypes.CDLL | None, uuid: str) -> bool:
    """Whether NVML knows no GPU of this UUID, as that of a MIG slice."""
    handle = ctypes.c_void_p()
    not_found = 6  # NVML_ERROR_NOT_FOUND
    if nvml is None:
        return False
    status: int = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle))
    return status == not_found


def _check(cuda: ctypes.CDLL, code: int) -> None:
    if code == 0:
        return
    words: list[str] = []
    for function in (cuda.cuGetErrorName, cuda.cuGetErrorString):
        text = ctypes.c_char_p()
        found = function(code, ctypes.byref(text)) == 0 and text.value is not None
        words.append((text.value or b"").decode() if found else f"error {code}")
    raise DriverError(*words)


def main() -> None:
    """Print the answer; whatever fails is part of it."""
    answer: dict[str, Any] = {}
    try:
        answer = list_devices()
    except DriverError as error:
        answer["error"], answer["message"] = error.args
    except OSError as error:
        answer["error"], answer["message"] = "no_driver", str(error)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
