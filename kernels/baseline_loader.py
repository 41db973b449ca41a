"""Loading a library's implementation of a problem: the functions of its baseline.py.

A `baseline.py` beside problem.yaml is trusted code, loaded by path as oracle.py is:

    DISTRIBUTIONS = ("flashinfer-python",)        whose installed versions name the library
    entry(tensors, scalars, pdl) -> launch        one function for each baseline of problem.yaml

It imports its library inside the functions: loading it needs neither torch nor a GPU. Nothing is
called here; the worker does that (tools/gpu/worker/library_side.py).
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from kopt.config.errors import ToolError

from .problem import Baseline, Problem

FILE_NAME = "baseline.py"


class BindBaseline(Protocol):
    """A function of baseline.py: binds a call to tensors, launches nothing."""

    def __call__(
        self, tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
    ) -> Callable[[], object]:
        """Return what launches the call on torch's current stream.

        Args:
            tensors: Every tensor of the problem by name: a torch CUDA tensor in storage shape and
                dtype (packed e2m1: uint8), over memory that is not torch's.
            scalars: The problem's scalars.
            pdl: Whether to launch with programmatic dependent launch.

        Raises:
            ImportError: The library, or a part of it, is not installed.
            NotImplementedError: It has no such path on this device or for this shape.
        """
        ...


@dataclass(frozen=True)
class LoadedBaseline:
    """One function of a baseline.py, and whose code it calls."""

    bind: BindBaseline
    library: str
    """Installed versions, e.g. `flashinfer-python 0.7.2, nvidia-cutlass-dsl 4.8.1`."""


def load_baseline(problem: Problem, baseline: Baseline) -> LoadedBaseline:
    """Return the function that `baseline` names.

    Raises:
        ToolError: baseline.py is missing or fails to load, has no such function or one that takes
            other arguments, or does not name its distributions.
    """
    path = problem.folder / FILE_NAME
    try:
        source = path.read_bytes()
    except FileNotFoundError as error:
        raise ToolError(
            f"{path} is missing: baseline {baseline.name!r} of {problem.name} is a function of it"
        ) from error
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    module = _run_module(path, source)
    function = getattr(module, baseline.entry, None)
    if not inspect.isfunction(function):
        raise ToolError(
            f"{path} defines no function {baseline.entry}(), which baseline {baseline.name!r} of"
            f" {problem.name} names"
        )
    try:
        inspect.signature(function).bind({}, {}, False)
    except TypeError as error:
        raise ToolError(
            f"{path}: {baseline.entry}{inspect.signature(function)} must take"
            " (tensors, scalars, pdl)"
        ) from error
    return LoadedBaseline(cast(BindBaseline, function), _installed_versions(module, path))


@lru_cache
def _run_module(path: Path, source: bytes) -> ModuleType:
    """Run the file once per content: what its functions keep, such as built modules, then lasts."""
    module = ModuleType(f"kopt_baseline_{path.parent.name}")
    module.__file__ = str(path)
    try:
        exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    except Exception as error:  # the user's own file: whatever it raises is theirs to mend
        raise ToolError(f"{path} fails to load: {type(error).__name__}: {error}") from error
    return module


def _installed_versions(module: ModuleType, path: Path) -> str:
    names = getattr(module, "DISTRIBUTIONS", None)
    if not isinstance(names, tuple) or not names:
        raise ToolError(
            f'{path} must say whose code it calls, as in DISTRIBUTIONS = ("flashinfer-python",)'
        )
    return ", ".join(_installed_version(str(name)) for name in cast(tuple[object, ...], names))


@lru_cache
def _installed_version(distribution: str) -> str:
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return f"{distribution} not installed"
