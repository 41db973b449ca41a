"""The CUDA driver API as kopt uses it, each call checked: the only importer of cuda.bindings.

Thin and typed: handles and addresses are plain integers, a result other than CUDA_SUCCESS raises
`CudaError`. It keeps no state and decides nothing. What one place needs goes through `call` there;
launches and tensor maps: `driver_launch.py`.
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
        error = cuda_error(result)
        error.add_note(name)  # for who reads of a worker that failed (worker/__main__.py)
        raise error
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


def device_attribute(device: int, name: str) -> int:
    """Return an attribute by its name without `CU_DEVICE_ATTRIBUTE_`."""
    attribute = enum("CUdevice_attribute", f"CU_DEVICE_ATTRIBUTE_{name}")
    return int(call("cuDeviceGetAttribute", attribute, device))


def switch_persisting_l2_off() -> None:
    """Set the persisting part of L2 to nothing.

    cuCtxResetPersistingL2Cache is never called: after it the launches of graphs may cost 0.35 us
    more. Source: "Two speeds of a launch" in docs/measurement.md.
    """
    call("cuCtxSetLimit", enum("CUlimit", "CU_LIMIT_PERSISTING_L2_CACHE_SIZE"), 0)


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


def copy_to_device(address: int, source: npt.NDArray[Any], stream: Stream) -> None:
    """Copy a C-contiguous array; it must live until the stream has been synchronized."""
    call("cuMemcpyHtoDAsync", address, source.ctypes.data, source.nbytes, stream)


def copy_to_host(target: npt.NDArray[Any], address: int, stream: Stream) -> None:
    """Fill a C-contiguous array; its values stand once the stream has been synchronized."""
    call("cuMemcpyDtoHAsync", target.ctypes.data, address, target.nbytes, stream)


def fill(address: int, byte: int, size_bytes: int, stream: Stream) -> None:
    """Fill device memory with one byte value."""
    call("cuMemsetD8Async", address, byte, size_bytes, stream)


# Modules


def get_function(module: Module, name: str) -> Function:
    """Return a kernel, loaded at once: no launch or capture loads it lazily."""
    function = Function(int(call("cuModuleGetFunction", module, name.encode())))
    call("cuFuncLoad", function)
    return function


def set_function_attribute(function: Function, name: str, value: int) -> None:
    """Set an attribute by its name without `CU_FUNC_ATTRIBUTE_`."""
    attribute = enum("CUfunction_attribute", f"CU_FUNC_ATTRIBUTE_{name}")
    call("cuFuncSetAttribute", function, attribute, value)
