"""A stand-in for the few parts of torch that lend tensors: its tensors lie in host memory."""

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import DTYPE_SIZE_BYTES, numpy_dtype
from kopt.tools.gpu.worker import driver


class HostTensor:
    """A view of memory that somebody else owns."""

    def __init__(self, array: npt.NDArray[Any]) -> None:
        """View `array`."""
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self.array.shape

    def view(self, dtype: np.dtype[Any]) -> Self:
        """Return the same bytes as another dtype."""
        return type(self)(self.array.view(dtype))

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """Return the same elements in another shape."""
        return type(self)(self.array.reshape(shape))

    def copy_(self, source: "HostTensor") -> None:
        """Take the elements of `source`."""
        self.array[:] = source.array


class DeviceTensor(HostTensor):
    """A tensor whose copies are the stand-in driver's, so that a capture keeps them."""

    def copy_(self, source: HostTensor) -> None:
        """Enqueue the copy."""
        places = self.array.ctypes.data, source.array.ctypes.data
        driver.call("cuMemcpyDtoDAsync", *places, self.array.nbytes, 0)


class HostTorch(ModuleType):
    """What `import torch` gives; streams are numbers, allocations are counted by hand."""

    def __init__(self, tensor: type[HostTensor] = HostTensor) -> None:
        """Start with no allocation, on stream 0."""
        super().__init__("torch")
        self._tensor = tensor
        self.current_stream = 0
        self.allocated = 0
        self.backends = SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True)),
            cudnn=SimpleNamespace(allow_tf32=True),
        )
        for name in DTYPE_SIZE_BYTES:
            setattr(self, name, numpy_dtype(name))
        self.cuda = SimpleNamespace(
            init=lambda: None,
            ExternalStream=self._external_stream,
            stream=self._on_stream,
            memory_stats=self._memory_stats,
        )

    def as_tensor(self, memory: Any, device: str) -> HostTensor:
        """Return a tensor over the memory that the CUDA array interface of `memory` describes."""
        del device
        interface = memory.__cuda_array_interface__
        address, is_read_only = interface["data"]
        assert not is_read_only
        raw = (ctypes.c_uint8 * interface["shape"][0]).from_address(address)
        return self._tensor(np.frombuffer(raw, dtype=interface["typestr"]))

    def empty_like(self, given: HostTensor) -> HostTensor:
        """Return a tensor of its own memory, which counts as an allocation."""
        self.allocated += 1
        return self._tensor(np.full_like(given.array, np.nan))

    def _external_stream(self, stream: int, device: str) -> int:
        del device
        return stream

    def _memory_stats(self, device: str) -> dict[str, int]:
        del device
        return {"allocation.all.allocated": self.allocated}

    @contextmanager
    def _on_stream(self, stream: int) -> Generator[None]:
        before, self.current_stream = self.current_stream, stream
        try:
            yield
        finally:
            self.current_stream = before
