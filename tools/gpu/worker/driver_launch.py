"""Launch configurations and tensor maps of the driver API: structures of C made from numbers."""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from kopt.kernels.plan import Launch

from .driver import Function, Stream, bindings, call, cuda_error, enum

TENSOR_MAP_BYTES = 128
"""Size and alignment of CUtensorMap in the cuda.h of CUDA 13.0."""
_CUDA_12 = 12000


_CARVEOUT_PERCENT = {"max_l1": 0, "max_shared": 100}
"""Percentages by the numbers of CUshared_carveout."""


def launch_config(launch: Launch, stream: Stream) -> Any:
    """Return the CUlaunchConfig of a plan's launch on `stream`, for any number of launches."""
    cuda = bindings()
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = launch.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = launch.block
    config.sharedMemBytes = launch.dynamic_smem_bytes
    config.hStream = cuda.CUstream(stream)
    attributes = _launch_attributes(launch)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config


def _launch_attributes(launch: Launch) -> list[Any]:
    attributes: list[Any] = []
    if launch.cooperative:
        attributes.append(_launch_attribute("COOPERATIVE"))
        attributes[-1].value.cooperative = 1
    if launch.cluster != (1, 1, 1):
        attributes.append(_launch_attribute("CLUSTER_DIMENSION"))
        dimension = attributes[-1].value.clusterDim
        dimension.x, dimension.y, dimension.z = launch.cluster
    if launch.pdl:
        attributes.append(_launch_attribute("PROGRAMMATIC_STREAM_SERIALIZATION"))
        attributes[-1].value.programmaticStreamSerializationAllowed = 1
    if launch.carveout in _CARVEOUT_PERCENT:
        # Of the launch, not of the function: a captured node keeps it. It goes before
        # CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT. Unsigned, 0 to 100: there is no value
        # for "no preference". Source: CUlaunchAttributeID in the cuda.h of CUDA 13.0.
        attributes.append(_launch_attribute("PREFERRED_SHARED_MEMORY_CARVEOUT"))
        attributes[-1].value.sharedMemCarveout = _CARVEOUT_PERCENT[launch.carveout]
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
