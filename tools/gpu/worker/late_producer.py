"""A kernel before the candidate that writes the inputs late: who does not wait finds other values.

Programmatic dependent launch lets a kernel start before the one before it has ended. In a check
nothing else would notice that it reads too early, since its inputs lie there long before.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.kernels.problem import Problem

from . import driver, driver_launch
from .arguments import ArgumentBlock
from .driver import Stream
from .driver_launch import LaunchShape
from .failure import step

DELAY_CYCLES = 200_000
"""About 0.1 ms at 2 GHz: the next launch comes from the host some 10 us later and must start
within that time."""
_BLOCKS, _THREADS = 8, 256
_MOST_COPIES = 128
"""MOST_COPIES of late_producer.cu; the entries fill most of the 4 KiB of parameters."""


@dataclass(frozen=True)
class LateCopy:
    """One input that is brought late."""

    source: int
    target: int
    size_bytes: int


class _Copy(ctypes.Structure):
    _fields_ = (
        ("source", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


class _Copies(ctypes.Structure):
    """Struct Copies of late_producer.cu."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("delay_cycles", ctypes.c_uint64),
        ("entries", _Copy * _MOST_COPIES),
    )


def late_inputs(problem: Problem) -> tuple[str, ...]:
    """Return the inputs that an earlier kernel may have written: all but the static ones."""
    return tuple(t.name for t in problem.tensors if t.role != "out" and not t.static)


def copies_parameter(copies: Sequence[LateCopy]) -> bytes:
    """Return the kernel's only parameter.

    Raises:
        InfraError: There are more copies than it has room for.
    """
    if len(copies) > _MOST_COPIES:
        raise InfraError(f"{len(copies)} inputs are too many for the late producer")
    parameter = _Copies(count=len(copies), delay_cycles=DELAY_CYCLES)
    for number, copy in enumerate(copies):
        parameter.entries[number] = _Copy(copy.source, copy.target, copy.size_bytes)
    return bytes(parameter)


class LateProducer:
    """The kernel, loaded."""

    def __init__(self, cubin: Path, stream: Stream) -> None:
        """Load `cubin` (late_producer.cu).

        Raises:
            Failure: It does not load.
        """
        with step("load"):
            module = driver.load_module(cubin.read_bytes())
            self._function = driver.get_function(module, "late_producer")
        shape = LaunchShape(grid=(_BLOCKS, 1, 1), block=(_THREADS, 1, 1))
        self._config = driver_launch.launch_config(shape, stream)

    def launch(self, copies: Sequence[LateCopy]) -> None:
        """Launch; what follows on the stream with the PDL attribute starts beside it.

        Raises:
            Failure: The driver refuses.
        """
        block = ArgumentBlock([copies_parameter(copies)])  # the driver copies it during the call
        with step("launch"):
            driver_launch.launch(self._function, self._config, block.address)
