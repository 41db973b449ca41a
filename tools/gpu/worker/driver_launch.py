"""Launch configurations and tensor maps of the driver API: structures of C made from numbers."""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from .driver import Function, Stream, bindings, call, cuda_error, enum

TENSOR_MAP_BYTES = 128
"""Size and alignment of CUtensorMap in the cuda.h of CUDA 13.0."""
_CUDA_12 = 12000


@dataclass(frozen=True)
class LaunchShape:
    """An execution configuration. `grid` counts blocks, also with clusters."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    dynamic_smem_bytes: int = 0
    cooperative: bool = False
    pdl: bool = False
    carveout_percent: int | None = None
    """Shared memory to prefer, in percent of the most that an SM can have; None: no preference."""


def launch_config(shape: LaunchShape, stream: Stream) -> Any:
    """Return the CUlaunchConfig of `shape` on `stream`, for any number of launches."""
    cuda = bindings()
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = shape.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = shape.block
    config.sharedMemBytes = shape.dynamic_smem_bytes
    config.hStream = cuda.CUstream(stream)
    attributes = _launch_attributes(shape)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _launch_attributes(shape: LaunchShape) -> list[Any]:
    attributes: list[Any] = []
    if shape.cooperative:
        attributes.append(_launch_attribute("COOPERATIVE"))
        attributes[-1].value.cooperative = 1
    if shape.cluster != (1, 1, 1):
        attributes.append(_launch_attribute("CLUSTER_DIMENSION"))
        dimension = attributes[-1].value.clusterDim
        dimension.x, dimension.y, dimension.z = shape.cluster
    if shape.pdl:
        attributes.append(_launch_attribute("PROGRAMMATIC_STREAM_SERIALIZATION"))
        attributes[-1].value.programmaticStreamSerializationAllowed = 1
    if shape.carveout_percent is not None:
        # Of the launch, not of the function: a captured node keeps it. It goes before
        # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT. Unsigned, 0 to 100: there is no value
        # for "no preference". Source: CUlaunchAttributeID in the cuda.h of CUDA 13.0.
        attributes.append(_launch_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT"))
        attributes[-1].value.sharedMemCarveout = shape.carveout_percent
    return attributes


def _launch_attribute(name: str) -> Any:
    attribute = bindings().CUlaunchAttribute()
    attribute.id = enum("CUlaunchAttributeID", f"CU_LAUNCH_ATTRIBUTE_{name}")
    return attribute


def launch(function: Function, config: Any, parameters: int) -> None:
    """Launch with `parameters`, the host address of a void*[] of pointers to the arguments."""
    call("cuLaunchKernelEx", config, function, parameters, 0)


@dataclass(frozen=True)
class TiledMap:
    """The arguments of cuTensorMapEncodeTiled, innermost dimension FIRST, enums as numbers."""

    dtype: int
    extents: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    """Strides of every dimension but the innermost."""
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int
    swizzle: int
    l2_promotion: int
    fill: int


def encode_tiled(tiled: TiledMap, address: int, descriptor: int) -> None:
    """Write the CUtensorMap of `tiled` over device memory at `address` to `descriptor`.

    Args:
        tiled: Checked by kernels/plan_limits.py.
        address: Device address, 16-byte aligned.
        descriptor: Host address, 128-byte aligned. The bindings' own CUtensorMap is not, which is
            why the driver's entry point is called directly.
    """
    rank = len(tiled.extents)
    wide, narrow = ctypes.c_uint64 * rank, ctypes.c_uint32 * rank
    number = _encode_tiled_entry()(
        descriptor,
        tiled.dtype,
        rank,
        address,
        wide(*tiled.extents),
        wide(*tiled.strides_bytes),
        narrow(*tiled.box),
        narrow(*tiled.element_strides),
        tiled.interleave,
        tiled.swizzle,
        tiled.l2_promotion,
        tiled.fill,
    )
    if number != 0:
        raise cuda_error(bindings().CUresult(number))


@cache
def _encode_tiled_entry() -> Any:
    pointer, _ = call("cuGetProcAddress", b"cuTensorMapEncodeTiled", _CUDA_12, 0)
    numbers, array = (ctypes.c_int,) * 4, ctypes.c_void_p
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
        ctypes.c_uint32,
        ctypes.c_void_p,
        *(array,) * 4,
        *numbers,
    )
    return prototype(pointer)
