"""The inputs of one case and what its outputs must hold, as the oracle makes them."""

import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import KoptError, ToolError
from kopt.kernels.case_inputs import CASE_REGIMES, draw_inputs, fill_ignored
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.graph_runs import GraphRunner
from kopt.kernels.narrowing import float32_is_enough
from kopt.kernels.oracle import (
    Arrays,
    Between,
    expected_at,
    expected_in_steps_at,
    load_oracle,
    load_steps,
)
from kopt.kernels.problem import Problem, Workload, storage_shape

from .judged_rows import JudgedRows, draw_judged_rows, judged_workload
from .oracle_memory import allowance_bytes, limited_memory
from .output import Output
from .reference import Reference, make_reference

_ROWS_STREAM = 1
"""Beside the seed: rows that are judged are drawn apart from the inputs."""


@dataclass(frozen=True)
class CaseKey:
    """What decides a case's inputs."""

    problem: Problem
    workload: Workload
    """Its scalars are those of the case (scalars.py)."""
    seed: int
    regime: str


InSteps = Callable[[], Mapping[str, Between]]
"""Computes, for some outputs, what they are before the last rounding if values on the way are
rounded too."""


@dataclass(frozen=True)
class CaseData:
    """Inputs by tensor name, and the reference of every output."""

    inputs: dict[str, npt.NDArray[Any]]
    """Every `in` and `inout` tensor, storage shape and dtype. Read-only."""
    references: dict[str, Reference]
    """Every `out` and `inout` tensor."""
    in_steps: InSteps = dict
    """Asked where an output's errors point one way."""
    judged: JudgedRows | None = None
    """The rows of the outputs that the references are of; None: all."""

    @property
    def judged_inputs(self) -> Arrays:
        """The inputs, with the judged rows alone."""
        return self.inputs if self.judged is None else self.judged.take(self.inputs)

    def output(self, name: str, array: npt.NDArray[Any]) -> Output:
        """Return an output as the device gave it back beside its reference."""
        whole = {name: array}
        taken = whole if self.judged is None else self.judged.take(whole)
        return Output(name, self.references[name], taken[name], self.judged)


def make_case_data(key: CaseKey, graphs: GraphRunner | None = None) -> CaseData:
    """Run the oracle: `numpy.random.default_rng([seed, place of regime in CASE_REGIMES])`.

    Args:
        key: Decides the inputs.
        graphs: Runs the graph of an oracle that has one; None: the CPU does.

    Raises:
        InfraError: The device of `graphs` failed.
        ToolError: The oracle is missing or fails, or its arrays are not those of the problem.
    """
    oracle = load_oracle(key.problem)
    rng = np.random.default_rng([key.seed, CASE_REGIMES.index(key.regime)])
    with _oracle_call(key, "make_inputs"):
        inputs = draw_inputs(key.problem, oracle, key.workload, rng, key.regime)
    _refuse_wrong_arrays(key, inputs, ("in", "inout"))
    place = CASE_REGIMES.index(key.regime)
    chosen = np.random.default_rng([key.seed, place, _ROWS_STREAM])
    judged = draw_judged_rows(key.problem, key.workload, chosen)
    asked = key
    if judged is not None:
        asked = replace(key, workload=judged_workload(key.problem, key.workload, judged))
    given = inputs if judged is None else judged.take(inputs)
    scalars = key.problem.scalar_values(key.workload)
    with _oracle_call(key, "expected"), float32_is_enough():
        expected = expected_at(oracle, given, scalars, asked.workload, graphs)
    _refuse_wrong_arrays(
        asked, {name: entry.rounded for name, entry in expected.items()}, ("out", "inout")
    )
    inputs = fill_ignored(key.problem, inputs, key.regime)
    for array in inputs.values():
        array.setflags(write=False)
    references = {
        name: make_reference(key.problem, name, entry) for name, entry in expected.items()
    }
    data = CaseData(inputs, references, judged=judged)
    return replace(data, in_steps=in_steps_of(key, data))


def in_steps_of(key: CaseKey, data: CaseData) -> InSteps:
    """Return what calls `expected_in_steps` of the problem; without one it gives nothing."""
    judged, workload = data.judged, key.workload
    if judged is not None:
        workload = judged_workload(key.problem, workload, judged)

    def compute() -> Mapping[str, Between]:
        steps = load_steps(key.problem)
        if steps is None:
            return {}
        scalars = key.problem.scalar_values(key.workload)
        with _oracle_call(key, "expected_in_steps", "steps.py"):
            return expected_in_steps_at(steps, data.judged_inputs, scalars, workload)

    return compute


@contextmanager
def _oracle_call(key: CaseKey, function: str, file: str = "oracle.py") -> Generator[None]:
    """Report what the problem's own code raises as its author's to mend, with its line."""
    path = key.problem.folder / file
    allowance = allowance_bytes(key.problem, key.workload)
    try:
        with limited_memory(allowance):
            yield
    except KoptError:
        raise
    except Exception as error:  # the user's own file: whatever it raises is theirs to mend
        lines = [
            f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)
        ]
        place = f"{path}:{lines[-1]}" if lines else str(path)
        what = f"{function}() fails on {key.workload.name}, {key.regime} inputs"
        if isinstance(error, MemoryError):
            what += f", for whose tensors it may take {allowance / (1 << 30):.1f} GiB"
        raise ToolError(f"{place}: {what}: {type(error).__name__}: {error}") from error


def _refuse_wrong_arrays(
    key: CaseKey, arrays: Mapping[str, npt.NDArray[Any]], roles: tuple[str, ...]
) -> None:
    wanted = {
        tensor.name: (storage_shape(tensor, key.workload.axes), numpy_dtype(tensor.dtype))
        for tensor in key.problem.tensors
        if tensor.role in roles
    }
    path = key.problem.folder / "oracle.py"
    if set(arrays) != set(wanted):
        raise ToolError(f"{path} gives tensors {sorted(arrays)}; wanted {sorted(wanted)}")
    for name, (shape, dtype) in wanted.items():
        array = arrays[name]
        if array.shape != shape or array.dtype != dtype:
            raise ToolError(f"{path}: {name} is {array.dtype}{array.shape}; wanted {dtype}{shape}")
