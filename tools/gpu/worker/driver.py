"""The CUDA driver API as kopt uses it, each call checked: the only importer of cuda.bindings.

Thin and typed: handles and addresses are plain integers, a result other than CUDA_SUCCESS raises
`CudaError`. It keeps no state and decides nothing. Launches and tensor maps: `driver_launch.py`,
graphs and events: `driver_graphs.py`.
"""

import importlib
from functools import cache
from typing import Any, NewType

import numpy.typing as npt

from kopt.config.errors import SetupError

Address = NewType("Address", int)
"""An address in device memory."""
Stream = NewType("Stream", int)
Module = NewType("Module", int)
Function = NewType("Function", int)


class CudaError(Exception):
    """A driver call did not return CUDA_SUCCESS."""

    def __init__(self, code: str, message: str) -> None:
        """Keep both as `code`, e.g. CUDA_ERROR_ILLEGAL_ADDRESS, and `message`, CUDA's own words."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


@cache
def bindings() -> Any:
    """Return the module cuda.bindings.driver.

    Raises:
        SetupError: It is not installed.
    """
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        message = f"cuda.bindings cannot be imported ({error}): pip install 'kopt-mcp[gpu]'"
        raise SetupError(message) from error


def call(name: str, *arguments: Any) -> Any:
    """Call `name` of the driver API; return what it gives beside the result code.

    Raises:
        CudaError: The result is not CUDA_SUCCESS.
    """
    result, *values = getattr(bindings(), name)(*arguments)
    if result != 0:
        raise cuda_error(result)
    return values[0] if len(values) == 1 else tuple(values)


def cuda_error(result: Any) -> CudaError:
    """Return the error of a CUresult, in CUDA's own words."""
    _, text = bindings().cuGetErrorString(result)
    message = text.decode() if text is not None else "the driver has no words for it"
    return CudaError(str(result.name), message)


def enum(kind: str, name: str) -> Any:
    """Return a member of one of the driver's enumerations."""
    return getattr(getattr(bindings(), kind), name)


# Device and context


def initialize() -> None:
    """Initialize the driver; no context exists yet."""
    call("cuInit", 0)


def device_count() -> int:
    """Return the number of visible devices."""
    return int(call("cuDeviceGetCount"))


def device_uuid_bytes(device: int) -> bytes:
    """Return the 16 bytes of the device's UUID."""
    return bytes(call("cuDeviceGetUuid", device).bytes)


def device_attribute(device: int, name: str) -> int:
    """Return an attribute by its name without `CU_DEVICE_ATTRIBUTE_`."""
    attribute = enum("CUdevice_attribute", f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call("cuDeviceGetAttribute", attribute, device))


def retain_primary_context(device: int) -> None:
    """Retain the context that torch uses too, and make it current."""
    call("cuCtxSetCurrent", int(call("cuDevicePrimaryCtxRetain", device)))


def switch_persisting_l2_off() -> None:
    """Set the persisting part of L2 to nothing, and forget lines that persist already."""
    call("cuCtxSetLimit", enum("CUlimit", "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"), 0)
    call("cuCtxResetPersistingL2Cache")


def create_stream() -> Stream:
    """Return a stream that does not wait for the legacy default stream."""
    flags = enum("CUstream_flags", "CU_STREAM_NON_BLOCKING").value
    return Stream(int(call("cuStreamCreate", flags)))


def synchronize_stream(stream: Stream) -> None:
    """Wait for all work of `stream`."""
    call("cuStreamSynchronize", stream)


# Memory


def allocate(size_bytes: int) -> Address:
    """Return new device memory, aligned to 256 bytes at least, contents undefined."""
    return Address(int(call("cuMemAlloc", size_bytes)))


def free(address: Address) -> None:
    """Give device memory back; waits for the device."""
    call("cuMemFree", address)


def memory_info() -> tuple[int, int]:
    """Return free and total bytes of the device."""
    free_bytes, total_bytes = call("cuMemGetInfo")
    return int(free_bytes), int(total_bytes)


def copy_to_device(address: int, source: npt.NDArray[Any], stream: Stream) -> None:
    """Copy a C-contiguous array; it must live until the stream has been synchronized."""
    call("cuMemcpyHtoDAsync", address, source.ctypes.data, source.nbytes, stream)


def copy_to_host(target: npt.NDArray[Any], address: int, stream: Stream) -> None:
    """Fill a C-contiguous array; its values stand once the stream has been synchronized."""
    call("cuMemcpyDtoHAsync", target.ctypes.data, address, target.nbytes, stream)


def copy_on_device(target: int, source: int, size_bytes: int, stream: Stream) -> None:
    """Copy from device memory to device memory."""
    call("cuMemcpyDtoDAsync", target, source, size_bytes, stream)


def fill(address: int, byte: int, size_bytes: int, stream: Stream) -> None:
    """Fill device memory with one byte value."""
    call("cuMemsetD8Async", address, byte, size_bytes, stream)


# Modules


def load_module(image: bytes) -> Module:
    """Load a cubin into the current context."""
    return Module(int(call("cuModuleLoadData", image)))


def get_function(module: Module, name: str) -> Function:
    """Return a kernel, loaded at once: no launch or capture loads it lazily."""
    function = Function(int(call("cuModuleGetFunction", module, name.encode())))
    call("cuFuncLoad", function)
    return function


def set_function_attribute(function: Function, name: str, value: int) -> None:
    """Set an attribute by its name without `CU_FUNC_ATTRIBUTE_`."""
    attribute = enum("CUfunction_attribute", f"CU_FUNC_ATTRIBUTE_{name}")
    call("cuFuncSetAttribute", function, attribute, value)


def blocks_per_sm(function: Function, threads: int, dynamic_smem_bytes: int) -> int:
    """Return how many blocks of `threads` an SM holds at once."""
    name = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    return int(call(name, function, threads, dynamic_smem_bytes))
