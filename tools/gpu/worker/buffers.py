"""The buffers of one checked execution in device memory: filled, poisoned, and read back.

One allocation is kept and reused. All of it is overwritten before each execution, and again once
its outputs are read back: no candidate, executed or timed, finds there what another one left. What
timing needs is `buffer_sets.py`'s.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import TensorSpec, storage_shape
from kopt.kernels.wide_work import copy_wide, fill_wide
from kopt.tools.devices.device import Arrays
from kopt.tools.gpu.messages import BufferDamage, ExecuteRequest

from . import driver
from .buffer_layout import (
    Bytes,
    as_bytes,
    call_sizes,
    content_damage,
    guard_damage,
    lay_out,
    paint_guards,
    side_plan,
)
from .driver import Address, Stream
from .pinned_memory import PinnedPool

LATE_PREFIX = "late/"
"""Names the copy of an input that a late producer brings."""
STALE_POISON = 0x55
"""With this fill pattern an input that is brought late holds its own elements in other places until
then, with any other the pattern: who reads early cannot tell that it did by what it finds, and who
only needs sums of everything finds wrong ones with the other pattern."""

_LEAST_MOVED = 2  # elements


class DeviceArena:
    """One device allocation, grown when it is too small; its contents mean nothing."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._address = Address(0)
        self._size_bytes = 0

    @property
    def size_bytes(self) -> int:
        """How much is allocated."""
        return self._size_bytes

    def reserve(self, size_bytes: int) -> Address:
        """Return the address of at least `size_bytes`; what it returned before may be void."""
        if size_bytes > self._size_bytes:
            self.release()
            self._address = driver.allocate(size_bytes)
            self._size_bytes = size_bytes
        return self._address

    def release(self) -> None:
        """Give the memory back."""
        if self._size_bytes:
            self._size_bytes = 0
            driver.free(self._address)


@dataclass(frozen=True)
class CallData:
    """What one call computes on."""

    request: ExecuteRequest
    inputs: Arrays
    late: tuple[str, ...] = ()
    """Inputs whose buffers hold something else until a producer brings their values."""


class CallBuffers:
    """Every buffer of one call, with guard zones; `close` gives the host's memory back.

    What they are to hold is made on the host; nothing is copied before `upload`.
    """

    def __init__(self, data: CallData, arena: DeviceArena, pinned: PinnedPool, seed: int) -> None:
        """Lay out, and make the image of them on the host.

        Raises:
            CudaError: The device or the host has not enough memory.
            InfraError: An input does not have the bytes of its tensor.
        """
        random = np.random.default_rng(seed)
        sizes = call_sizes(
            data.request.problem, data.request.workload, side_plan(data.request.side)
        )
        sizes += [(f"{LATE_PREFIX}{name}", data.inputs[name].nbytes) for name in data.late]
        self._data = data
        self._layout = lay_out(sizes, random)
        self._arena = arena
        # Memory that the device lacks is said before the host's is touched.
        self._base = arena.reserve(self._layout.total_bytes)
        self.addresses: Mapping[str, int] = self._layout.addresses(self._base)
        with ExitStack() as stack:
            size_bytes = self._layout.total_bytes
            self._image, self._found = (
                stack.enter_context(pinned.lent(size_bytes)) for _ in range(2)
            )
            self._paint(random)
            self._resources = stack.pop_all()

    def close(self) -> None:
        """Let go of the memory on the host, outputs included."""
        self._resources.close()

    def _paint(self, random: np.random.Generator) -> None:
        image = self._image
        paint_guards(image, self._layout, random)
        for slot in self._layout.slots:
            if slot.name.removeprefix(LATE_PREFIX) not in self._data.inputs:
                fill_wide(image[slot.offset : slot.end], self._data.request.poison)
        for name, array in self._data.inputs.items():
            slot = self._layout.by_name[name]
            if array.nbytes != slot.size_bytes:
                expected = f"the tensor {slot.size_bytes}"
                raise InfraError(f"input {name} has {array.nbytes} bytes, {expected}")
            content = as_bytes(array)
            copy_wide(image[slot.offset : slot.end], content)
            if name in self._data.late:
                brought = self._layout.by_name[f"{LATE_PREFIX}{name}"]
                image[brought.offset : brought.end] = content
                image[slot.offset : slot.end] = self._before_producer(array, random)

    def _before_producer(self, array: npt.NDArray[Any], random: np.random.Generator) -> Bytes:
        poison = self._data.request.poison
        if poison != STALE_POISON or array.size < _LEAST_MOVED:
            return np.full(array.nbytes, poison, dtype=np.uint8)
        return as_bytes(np.roll(array, int(random.integers(1, array.size))))

    def upload(self, stream: Stream) -> None:
        """Overwrite the whole allocation: inputs, poison, guard zones, and poison behind them."""
        rest = self._arena.size_bytes - self._layout.total_bytes
        driver.copy_to_device(self._base, self._image, stream)
        if rest:
            driver.fill(
                self._base + self._layout.total_bytes, self._data.request.poison, rest, stream
            )
        driver.synchronize_stream(stream)

    def read_back(self, stream: Stream) -> tuple[Arrays, tuple[BufferDamage, ...]]:
        """Return the outputs, as unsigned integers of equal width, and all damage.

        The outputs stand until `close`.
        """
        found = self._found
        driver.copy_to_host(found, self._base, stream)
        driver.fill(self._base, self._data.request.poison, self._layout.total_bytes, stream)
        driver.synchronize_stream(stream)
        damage = list(guard_damage(self._layout, self._image, found))
        outputs: Arrays = {}
        for tensor in self._data.request.problem.tensors:
            slot = self._layout.by_name[tensor.name]
            content = found[slot.offset : slot.end]
            if tensor.role != "in":
                outputs[tensor.name] = self._typed(tensor, content)
                continue
            changed = content_damage(tensor.name, as_bytes(self._data.inputs[tensor.name]), content)
            if changed is not None:
                damage.append(changed)
        return outputs, tuple(damage)

    def _typed(self, tensor: TensorSpec, content: Bytes) -> np.ndarray[Any, Any]:
        width = dtype_size_bytes(tensor.dtype)
        shape = storage_shape(tensor, self._data.request.workload.axes)
        return content.view(f"u{width}").reshape(shape)
