"""Modules lowered, compiled and compared with PyTorch at each of their shapes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

from kopt.tools.pytorch.emit import emit_candidate

from .exported_graphs import exported_together
from .joint_exports import Inputs
from .plain_cuda import PlainCase, PlainLibrary

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Compared:
    """A module at its shapes: what was computed, and what PyTorch gives."""

    name: str
    workload: str
    found: list[Array]
    wanted: list[Array]


def compared(
    modules: Mapping[str, tuple[torch.nn.Module, Inputs]],
    folder: Path,
    tune: Mapping[str, int] | None = None,
) -> list[Compared]:
    """Lower all modules, compile them together and run each at each of its shapes.

    Args:
        modules: By name, with inputs at each shape.
        folder: For the library.
        tune: Values for the names that a candidate has; its default for the rest.
    """
    exported = exported_together(modules)
    cases: list[PlainCase] = []
    places: list[tuple[str, int]] = []
    for name, one in exported.items():
        source = emit_candidate(one.problem, one.graph)
        for number, workload in enumerate(one.problem.workloads):
            chosen = {key: value for key, value in (tune or {}).items() if f"{key}: [" in source}
            cases.append(PlainCase(one.problem, workload, source, chosen))
            places.append((name, number))
    library = PlainLibrary(cases, folder)
    results: list[Compared] = []
    for case, (name, number) in enumerate(places):
        one = exported[name]
        given = zip(one.graph.inputs, one.inputs[number], strict=True)
        arrays = {entry.name: as_array(tensor) for entry, tensor in given}
        found = library.run(case, arrays)
        wanted = [as_array(tensor) for tensor in one.outputs[number]]
        outputs = [found[output.name] for output in one.graph.outputs]
        results.append(Compared(name, f"w{number}", outputs, wanted))
    return results


def differences(
    modules: Mapping[str, tuple[torch.nn.Module, Inputs]],
    folder: Path,
    tune: Mapping[str, int] | None = None,
) -> dict[str, str]:
    """Return what differs from PyTorch, by module and workload; {} if everything agrees."""
    return {
        f"{one.name} {one.workload} output {place}": text
        for one in compared(modules, folder, tune)
        for place, (found, wanted) in enumerate(zip(one.found, one.wanted, strict=True))
        if (text := difference(found, wanted))
    }


def as_array(tensor: torch.Tensor) -> Array:
    """Return a tensor's elements in row-major order."""
    tensor = tensor.detach().contiguous()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return np.array(tensor.numpy(), order="C")


def difference(found: Array, wanted: Array) -> str:
    """Return how two results differ beyond rounding; "" if they do not."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape} instead of {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "biu":
        wrong = int(np.sum(found != wanted))
        return f"{wrong} of {wanted.size} differ" if wrong else ""
    share = {"float64": 1e-11, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
    tolerance = share[str(wanted.dtype)]
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    spread = float(np.nanmax(np.abs(np.where(np.isfinite(other), other, 0.0)), initial=0.0))
    close = np.isclose(one, other, rtol=tolerance, atol=tolerance * spread, equal_nan=True)
    if close.all():
        return ""
    at = tuple(int(place[0]) for place in np.nonzero(~close)) if close.ndim else ()
    return f"{int((~close).sum())} of {close.size} differ; at {at} {one[at]} instead of {other[at]}"
