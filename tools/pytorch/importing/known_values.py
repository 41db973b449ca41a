"""Values on fake tensors that follow from numbers in the source, as rates of dropped paths do.

Fake tensors have no values, so that `torch.linspace(0.0, 0.1, 12)[3].item()` in a constructor fails
on them. Here what small tensors of numbers hold is computed beside them, and nothing else is:
random draws and tensors that come from elsewhere have no value, and reading one still fails.
"""

import importlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from kopt.tools.pytorch.torch_library import load_torch

_MOST_ELEMENTS = 4096
"""Elements up to which a tensor's values are known: schedules, window sizes, small tables."""


@contextmanager
def known_values() -> Generator[None]:
    """Let numbers be read from fake tensors that are made of numbers alone.

    It stands within the mode of the fake tensors.
    """
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    known = _KnownValues()

    class Reader(base):  # type: ignore[misc] # torch's classes are Any here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return known.result(func, args, kwargs or {})

    with Reader():
        yield


class _KnownValues:
    """Real tensors beside fake ones."""

    def __init__(self) -> None:
        self._torch = load_torch()
        weak: Any = importlib.import_module("torch.utils.weak")
        self._real: Any = weak.WeakIdKeyDictionary()
        fake: Any = importlib.import_module("torch._subclasses.fake_tensor")
        self._fake: Any = fake.FakeTensor
        modes: Any = importlib.import_module("torch.utils._mode_utils")
        self._without: Callable[[], Any] = modes.no_dispatch

    def result(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Return what the fake tensors give; or a number that is read from known values."""
        if not self._is_known(func, args, kwargs):
            self._forget(func, args, kwargs)
            return func(*args, **kwargs)
        reals = self._torch.utils._pytree.tree_map(self._real_of, (args, kwargs))
        if not any("Tensor" in str(one.type) for one in func._schema.returns):
            with self._without():
                return func(*reals[0], **reals[1])
        fake = func(*args, **kwargs)
        if all(one.numel() <= _MOST_ELEMENTS for one in self._tensors(fake)):
            with self._without():
                real = func(*reals[0], **reals[1])
            for one, value in zip(self._tensors(fake), self._tensors(real), strict=True):
                self._real[one] = value
        return fake

    def _is_known(self, func: Any, args: Any, kwargs: Any) -> bool:
        if self._torch.Tag.nondeterministic_seeded in func.tags or "empty" in str(func):
            return False
        given = self._tensors((args, kwargs))
        return all(one in self._real or not isinstance(one, self._fake) for one in given)

    def _forget(self, func: Any, args: Any, kwargs: Any) -> None:
        """Drop the values of every tensor that shares memory with one that is written."""
        if not func._schema.is_mutable:
            return
        written = {
            self._real[one].untyped_storage().data_ptr()
            for one in self._tensors((args, kwargs))
            if one in self._real
        }
        for one, real in list(self._real.items()) if written else ():
            if real.untyped_storage().data_ptr() in written:
                del self._real[one]

    def _real_of(self, value: Any) -> Any:
        return self._real[value] if isinstance(value, self._fake) else value

    def _tensors(self, values: Any) -> Iterator[Any]:
        leaves = self._torch.utils._pytree.tree_leaves(values)
        return (one for one in leaves if isinstance(one, self._torch.Tensor))
