"""Running a problem's oracle: the fp64 result that decides correctness.

An `oracle.py` beside problem.yaml is trusted code of two functions:

    make_inputs(workload, rng, regime) -> {name: array}     every `in` and `inout` tensor
    expected(inputs, scalars) -> {name: Expected}           every `out` and `inout` tensor

A `steps.py` beside it may have a third, `expected_in_steps` (Steps). `expected` and
`expected_in_steps` may take the workload as a third parameter, and `expected` one called `graphs`:
what runs a PyTorch graph on a GPU (graph_runs.py), or None. `REGIMES` names the regimes that
`make_inputs` serves where it does not serve all of `input_regimes.py`; `warm_up()` imports what
takes seconds, while something else is waited for. `computed_values(workload)` says how many values
`expected` computes, of an oracle that may be asked for some rows of a large timed shape alone.

Arrays have the tensor's storage shape and numpy dtype (`dtypes.numpy_dtype`).
"""

import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

from .graph_runs import GraphRunner
from .input_regimes import REGIMES
from .problem import Problem, Workload

Arrays = Mapping[str, npt.NDArray[Any]]
Inputs = dict[str, npt.NDArray[Any]]
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ScaledBy:
    """Names the output tensor whose own values divide `Expected.exact` before rounding to codes."""

    tensor: str
    block: int
    """Consecutive elements of the last axis of the codes that share one scale."""


@dataclass(frozen=True)
class Expected:
    """What one output tensor must hold."""

    exact: npt.NDArray[np.floating[Any]]
    """The exact value before any rounding of this tensor, in LOGICAL elements: packed e2m1 has two
    per byte, even element in the low nibble. For codes with `scaled_by` this is the value before
    the division by the block's scale: code = round(exact / candidate's scale).
    Float64; float32 will do under `float32_is_enough` (narrowing.py), where its range suffices."""
    rounded: npt.NDArray[Any]
    """The correctly rounded result in storage shape and dtype."""
    written: npt.NDArray[np.bool_]
    """Storage elements that must be written; all others must keep the bytes they had."""
    scaled_by: ScaledBy | None = None
    logical_offsets: npt.NDArray[np.int64] | None = None
    """For tensors whose storage is permuted (sf_128x4): where each logical element of `exact` lies
    in the flat storage. None: storage order is logical order."""
    bit_exact: bool = False
    """True where the result is one rounding of a sum that fp32 holds exactly, such as the residual
    of add_rmsnorm: every honest order of operations then gives the same bits."""
    slack: npt.NDArray[np.float64] | None = None
    """Absolute error, in units of `exact`, that fp32 arithmetic may leave before the last rounding
    where terms cancel: about 2^-20 times the sum of the terms' magnitudes. Shape of `exact`; None
    where nothing cancels, for then errors are relative and the gates' own windows cover them."""
    slack_deviations: float | None = None
    """How many standard deviations of honest errors `slack` is; their root mean square over a whole
    output is then judged, too. None where `slack` is a bound for each element alone."""
    one_rounding: bool = False
    """True where honest kernels of a 16-bit output round to its format once, at the end, and
    `slack` is all that their arithmetic may leave before: an element is right only if it is the
    rounding of a value within `slack` of `exact`."""
    unit: npt.NDArray[np.float64] | float = 1.0
    """Real value of one unit of `exact`: 1 / global_scale for nvfp4 codes. It makes accuracy real,
    and tells codes of values that were rounded to bf16 before. An array broadcasts to the shape of
    `exact`."""


class Oracle(Protocol):
    """The two functions of an oracle.py; `expected_at` calls the second."""

    def make_inputs(
        self, workload: Workload, rng: np.random.Generator, regime: str
    ) -> dict[str, npt.NDArray[Any]]:
        """Return every `in` and `inout` tensor for one of `REGIMES`."""
        ...

    def expected(self, inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
        """Return every `out` and `inout` tensor."""
        ...


@dataclass(frozen=True)
class Between:
    """What outputs are before their last rounding: something from one array to the other."""

    one: npt.NDArray[np.float64]
    other: npt.NDArray[np.float64]


class Steps(Protocol):
    """The function of a steps.py: what kernels give that round values on the way.

    Where such values lie on the grid of their format and are multiplied by almost a power of two,
    every rounding of a row goes the same way.
    """

    def expected_in_steps(
        self, inputs: Arrays, scalars: Mapping[str, float | int]
    ) -> Mapping[str, Between]:
        """Return outputs of 16 bits before their last rounding, each value on the way rounded."""
        ...


def load_oracle(problem: Problem) -> Oracle:
    """Return the oracle module of `problem`, loaded by path.

    Raises:
        ToolError: oracle.py is missing, fails to load, or lacks one of the two functions.
    """
    path = problem.folder / "oracle.py"
    if not path.is_file():
        raise ToolError(f"{path} is missing: every problem needs its oracle")
    oracle = cast(Oracle, _loaded(problem, path, ("make_inputs", "expected")))
    _refuse_odd_regimes(path, served_regimes(oracle))
    return oracle


def warm_up(problem: Problem) -> None:
    """Import what the oracle of `problem` computes with, if its `warm_up` says how.

    Raises:
        ToolError: As of `load_oracle`.
    """
    does = getattr(load_oracle(problem), "warm_up", None)
    if callable(does):
        does()


def computed_values(problem: Problem, workload: Workload) -> int | None:
    """Return how many values the oracle of `problem` computes; None if it is of all rows only.

    Raises:
        ToolError: As of `load_oracle`.
    """
    says: Callable[[Workload], int] | None = getattr(load_oracle(problem), "computed_values", None)
    return None if says is None else says(workload)


def load_steps(problem: Problem) -> Steps | None:
    """Return the module steps.py of `problem`, loaded by path; None if it has none.

    It is a file of its own because receipts bind oracle.py: it adds what honest kernels may give
    and changes no expected value.

    Raises:
        ToolError: steps.py fails to load, or lacks `expected_in_steps`.
    """
    path = problem.folder / "steps.py"
    if not path.is_file():
        return None
    return cast(Steps, _loaded(problem, path, ("expected_in_steps",)))


def _loaded(problem: Problem, path: Path, functions: tuple[str, ...]) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"kopt_{path.stem}_{problem.name}", path)
    if spec is None or spec.loader is None:
        raise ToolError(f"{path} is no Python file")
    module: ModuleType = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the user's own file: whatever it raises is theirs to mend
        raise ToolError(f"{path} fails to load: {type(error).__name__}: {error}") from error
    for name in functions:
        if not callable(getattr(module, name, None)):
            raise ToolError(f"{path} defines no function {name}()")
    return module


def _refuse_odd_regimes(path: Path, named: object) -> None:
    """Refuse a `REGIMES` that is no tuple of regimes with `normal` among them."""
    found = cast(tuple[object, ...], named) if isinstance(named, tuple) else ()
    if "normal" not in found or not set(found) <= set(REGIMES):
        raise ToolError(
            f"{path}: REGIMES is {named!r}; it is a tuple of {', '.join(REGIMES)}, and normal is"
            " always one of them"
        )


def served_regimes(oracle: Oracle) -> tuple[str, ...]:
    """Return the regimes of `input_regimes.py` that `make_inputs` serves; `normal` always."""
    served: tuple[str, ...] = getattr(oracle, "REGIMES", REGIMES)
    return served


def expected_at(
    oracle: Oracle,
    inputs: Arrays,
    scalars: Mapping[str, float | int],
    workload: Workload,
    graphs: GraphRunner | None = None,
) -> dict[str, Expected]:
    """Return every `out` and `inout` tensor; the oracle is told what it has parameters for."""
    function: Callable[..., dict[str, Expected]] = oracle.expected
    if "graphs" in inspect.signature(function).parameters:
        function = partial(function, graphs=graphs)
    return _called(function, inputs, scalars, workload)


def expected_in_steps_at(
    steps: Steps, inputs: Arrays, scalars: Mapping[str, float | int], workload: Workload
) -> Mapping[str, Between]:
    """Return what `steps` says; it is told the workload if it takes it."""
    return _called(steps.expected_in_steps, inputs, scalars, workload)


def _called(
    function: Callable[..., _Answer],
    inputs: Arrays,
    scalars: Mapping[str, float | int],
    workload: Workload,
) -> _Answer:
    if _takes_workload(function):
        return function(inputs, scalars, workload)
    return function(inputs, scalars)


def _takes_workload(function: Callable[..., object]) -> bool:
    """Return whether a third argument must be given, or is called `workload`."""
    given = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    places = [one for one in inspect.signature(function).parameters.values() if one.kind in given]
    if len(places) < 3:
        return False
    third = places[2]
    return third.default is inspect.Parameter.empty or third.name == "workload"
