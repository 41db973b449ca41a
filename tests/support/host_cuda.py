"""A stand-in for cuda.bindings.driver: device memory is host memory, kernels are Python functions.

Everything runs at once, in the order in which it is put on a stream. As with CUDA, a failure of a
kernel is told by the next synchronization, and by every one after that.
"""

import ctypes
import sys
from collections.abc import Callable
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.gpu.worker import driver, driver_launch

Kernel = Callable[["KernelArguments"], None]
GPU_UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
SM_COUNT = 4
_ALIGNMENT = 512


class CUresult(IntEnum):
    """The results that tests need, as cuda.h numbers them."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_OPERATING_SYSTEM = 304
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class DeviceFault(Exception):
    """Raised by a kernel that breaks the context."""


class KernelArguments:
    """What a launch was given, read through its void*[] as CUDA does it."""

    def __init__(self, parameters: int) -> None:
        """Read from the host address of a void*[]."""
        self._parameters = parameters

    def place(self, ordinal: int) -> int:
        """Return the host address of an argument."""
        pointers = ctypes.cast(self._parameters, ctypes.POINTER(ctypes.c_uint64))
        return int(pointers[ordinal])

    def raw(self, ordinal: int, size_bytes: int) -> bytes:
        """Return the bytes of an argument."""
        return ctypes.string_at(self.place(ordinal), size_bytes)

    def array(self, ordinal: int, dtype: str, count: int) -> npt.NDArray[Any]:
        """Return the memory that a pointer argument points to."""
        return memory_at(int.from_bytes(self.raw(ordinal, 8), "little"), dtype, count)


def memory_at(address: int, dtype: str, count: int) -> npt.NDArray[Any]:
    """Return host memory as an array that can be written."""
    size = np.dtype(dtype).itemsize * count
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address)).view(dtype)


class _Names:
    """An enumeration of which every member exists."""

    class _Name(str):
        value = 0

    def __getattr__(self, name: str) -> str:
        return self._Name(name)


class HostCuda(ModuleType):
    """What `import cuda.bindings.driver` gives."""

    def __init__(self) -> None:
        """Start with no memory in use and no kernel."""
        super().__init__("cuda.bindings.driver")
        self.kernels: dict[str, Kernel] = {}
        self.launched: list[tuple[str, Any]] = []
        """Name and CUlaunchConfig of every launch."""
        self.refused: dict[str, CUresult] = {}
        """Launches of these kernels fail at once."""
        self.function_attributes: list[tuple[str, int]] = []
        self.limits: dict[str, int] = {}
        self.memory_bytes = 1 << 30
        self.pending = CUresult.CUDA_SUCCESS
        self.pinned: dict[int, Any] = {}
        self.refuses_to_lock = False
        """Page-locked memory in use, by address."""
        self._blocks: dict[int, Any] = {}
        self._functions: list[str] = []
        self.CUresult = CUresult
        for kind in ("CUdevice_attribute", "CUfunction_attribute", "CUlimit", "CUstream_flags"):
            setattr(self, kind, _Names())
        self.CUlaunchAttributeID = _Names()

    # Structures

    CUlaunchConfig = SimpleNamespace
    CUstream = int

    def CUlaunchAttribute(self) -> SimpleNamespace:
        """Return an empty attribute."""
        return SimpleNamespace(id=None, value=SimpleNamespace(clusterDim=SimpleNamespace()))

    # Calls; each returns (CUresult, values...)

    def cuGetErrorString(self, result: CUresult) -> tuple[Any, ...]:
        """Describe a result."""
        return CUresult.CUDA_SUCCESS, result.name.lower().encode()

    def cuInit(self, _: int) -> tuple[Any, ...]:
        """Start nothing."""
        return (CUresult.CUDA_SUCCESS,)

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        """Show two devices."""
        return CUresult.CUDA_SUCCESS, 2

    def cuDeviceGetUuid(self, device: int) -> tuple[Any, ...]:
        """Give GPU_UUID to the second device."""
        raw = bytes(range(16)) if device else bytes(16)
        return CUresult.CUDA_SUCCESS, SimpleNamespace(bytes=raw)

    def cuDeviceGetAttribute(self, name: str, _: int) -> tuple[Any, ...]:
        """Look a few attributes up."""
        known = {
            "MULTIPROCESSOR_COUNT": SM_COUNT,
            "L2_CACHE_SIZE": 1 << 20,
            "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 4096,
            "MAX_PERSISTING_L2_CACHE_SIZE": 1 << 19,
        }
        return CUresult.CUDA_SUCCESS, known[name.removeprefix("CU_DEVICE_ATTRIBUTE_")]

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Any, ...]:
        """Number contexts like devices."""
        return CUresult.CUDA_SUCCESS, device

    def cuCtxSetCurrent(self, _: int) -> tuple[Any, ...]:
        """Have one context at a time anyway."""
        return (CUresult.CUDA_SUCCESS,)

    def cuCtxSetLimit(self, name: str, value: int) -> tuple[Any, ...]:
        """Remember the limit."""
        self.limits[name] = value
        return (CUresult.CUDA_SUCCESS,)

    def cuStreamCreate(self, _: int) -> tuple[Any, ...]:
        """Number the only stream."""
        return CUresult.CUDA_SUCCESS, 5

    def cuMemAlloc(self, size_bytes: int) -> tuple[Any, ...]:
        """Lend host memory."""
        if size_bytes > self.memory_bytes:
            return CUresult.CUDA_ERROR_OUT_OF_MEMORY, None
        block = ctypes.create_string_buffer(size_bytes + _ALIGNMENT)
        address = -(-ctypes.addressof(block) // _ALIGNMENT) * _ALIGNMENT
        self._blocks[address] = block
        return CUresult.CUDA_SUCCESS, address

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        """Take memory back."""
        del self._blocks[address]
        return (CUresult.CUDA_SUCCESS,)

    def cuMemHostRegister(self, address: int, size_bytes: int, _: int) -> tuple[Any, ...]:
        """Note what is locked."""
        if self.refuses_to_lock:
            return (CUresult.CUDA_ERROR_OPERATING_SYSTEM,)
        self.pinned[address] = size_bytes
        return (CUresult.CUDA_SUCCESS,)

    def cuMemHostUnregister(self, address: int) -> tuple[Any, ...]:
        """Forget it."""
        del self.pinned[address]
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyHtoDAsync(self, target: int, source: int, size: int, _: int) -> tuple[Any, ...]:
        """Copy at once."""
        ctypes.memmove(target, source, size)
        return (self.pending,)

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, _: int) -> tuple[Any, ...]:
        """Copy at once."""
        ctypes.memmove(target, source, size)
        return (self.pending,)

    def cuMemsetD8Async(self, address: int, byte: int, size: int, _: int) -> tuple[Any, ...]:
        """Fill at once."""
        ctypes.memset(address, byte, size)
        return (self.pending,)

    def cuStreamSynchronize(self, _: int) -> tuple[Any, ...]:
        """Tell what a kernel did."""
        return (self.pending,)

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        """Accept every image but an empty one."""
        return (CUresult.CUDA_SUCCESS, 1) if image else (CUresult.CUDA_ERROR_INVALID_IMAGE, None)

    def cuModuleGetFunction(self, _: int, name: bytes) -> tuple[Any, ...]:
        """Find a kernel that the test has given."""
        if name.decode() not in self.kernels:
            return CUresult.CUDA_ERROR_NOT_FOUND, None
        self._functions.append(name.decode())
        return CUresult.CUDA_SUCCESS, len(self._functions) - 1

    def cuFuncLoad(self, _: int) -> tuple[Any, ...]:
        """Load nothing."""
        return (CUresult.CUDA_SUCCESS,)

    def cuFuncSetAttribute(self, _: int, name: str, value: int) -> tuple[Any, ...]:
        """Remember the attribute."""
        self.function_attributes.append((name, value))
        return (CUresult.CUDA_SUCCESS,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_: int) -> tuple[Any, ...]:
        """Say that two blocks fit an SM."""
        return CUresult.CUDA_SUCCESS, 2

    def cuLaunchKernelEx(self, config: Any, function: int, *parameters: int) -> tuple[Any, ...]:
        """Run the kernel at once."""
        name = self._functions[function]
        if name in self.refused:
            return (self.refused[name],)
        self.launched.append((name, config))
        try:
            self.kernels[name](KernelArguments(parameters[0]))
        except DeviceFault:
            self.pending = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
        return (CUresult.CUDA_SUCCESS,)


@pytest.fixture
def host_cuda(monkeypatch: pytest.MonkeyPatch) -> HostCuda:
    """The stand-in, in the place of the real bindings."""
    cuda = HostCuda()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", cuda)
    fresh = driver.bindings.__wrapped__
    monkeypatch.setattr(driver, "bindings", fresh)
    monkeypatch.setattr(driver_launch, "bindings", fresh)
    return cuda
