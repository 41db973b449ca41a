"""What an exported function can be judged by: its regimes, its rows, and whether it is a task.

The oracle itself is asked, at the small shape, with the inputs of every regime. A regime whose
exact result is not finite, or whose budget is more than a tenth of what the results spread, is left
out by name. What remains must show every input's effect (effects.py). Rows are rows if rolling them
rolls the outputs, and changing some changes no other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from kopt.config.errors import ToolError
from kopt.kernels.derived_regimes import DERIVED_REGIMES, derive_inputs
from kopt.kernels.input_regimes import REGIMES, Magnitudes
from kopt.kernels.oracle import Expected, Inputs
from kopt.kernels.precision import Precision
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import Record
from kopt.tools.pytorch.oracle import ImportedOracle

from .effects import ADVICE, EffectTrial, refuse_without_effect

_TINY = (2.0**-12, 2.0**-6, 2.0**-3)
_HUGE = (2.0**12, 2.0**6, 2.0**3, 2.0)
_OF_SPREAD = 0.1
"""The most that the budget may take of what the results spread."""
_FIRST_SAMPLES = 3
"""Runs that are enough where they leave a budget of a tenth of what it may be."""
_SAME = 1e-9


class CheckBasis(Record):
    """What the checks of a problem may rest on."""

    regimes: tuple[str, ...]
    derived: tuple[str, ...]
    tiny: float
    huge: float
    has_rows: bool
    left_out: dict[str, str] = Field(default_factory=dict[str, str])
    """Regimes that are left out, with why."""
    faults: tuple[str, ...] = ()
    """What the checks cannot vary, in words."""


@dataclass(frozen=True)
class Probe:
    """A problem that is being tried out."""

    problem: Problem
    folder: Path
    """Holds graph.json and the constants."""
    precision: Precision

    def oracle(self, magnitudes: Magnitudes) -> ImportedOracle:
        """Return the oracle with these magnitudes of `tiny` and `huge`."""
        return ImportedOracle(self.folder, magnitudes=magnitudes, precision=self.precision)

    @property
    def workload(self) -> Workload:
        """The small one."""
        return self.problem.workloads[0]


def probe(asked: Probe) -> CheckBasis:
    """Return what the function can be judged by.

    Raises:
        ToolError: Ordinary inputs have no finite result, none that can be judged, or an input has
            no effect that a check would see.
    """
    plain = asked.oracle(Magnitudes(_TINY[-1], _HUGE[-1]))
    normal = _drawn(asked, plain, "normal", 1)
    first = plain.expected(normal, {}, asked.workload)
    reason = _unfit(first)
    if reason is not None:
        refuse_without_effect(
            _trial(asked, plain, first), ("normal",)
        )  # says more, where it is the cause
        raise ToolError(f"its results cannot be judged on ordinary inputs: {reason}; {ADVICE}")
    left_out: dict[str, str] = {}
    chosen = {"tiny": _TINY[-1], "huge": _HUGE[-1]}
    for regime, sizes in (("tiny", _TINY), ("huge", _HUGE)):
        for size in sizes:
            reason = _tried(asked, asked.oracle(Magnitudes(size, size)), regime)
            chosen[regime] = size
            if reason is None:
                break
        if reason is not None:
            left_out[regime] = reason
    oracle = asked.oracle(Magnitudes(chosen["tiny"], chosen["huge"]))
    for regime in (*REGIMES, *DERIVED_REGIMES):
        if regime in ("normal", "tiny", "huge"):
            continue
        reason = _tried(asked, oracle, regime)
        if reason is not None:
            left_out[regime] = reason
    regimes = tuple(one for one in REGIMES if one not in left_out)
    derived = tuple(one for one in DERIVED_REGIMES if one not in left_out)
    fixed = refuse_without_effect(_trial(asked, oracle, first), (*regimes, *derived))
    return CheckBasis(
        regimes=regimes,
        derived=derived,
        tiny=chosen["tiny"],
        huge=chosen["huge"],
        has_rows=_has_rows(asked, plain, normal, first),
        left_out=left_out,
        faults=tuple(
            f"input {name} is the same in every check: a kernel need not read it" for name in fixed
        ),
    )


def _trial(asked: Probe, oracle: ImportedOracle, normal: Mapping[str, Expected]) -> EffectTrial:
    return EffectTrial(
        asked.problem,
        tuple(given.name for given in oracle.graph.inputs if given.kind == "input"),
        lambda regime, seed: _drawn(asked, oracle, regime, seed),
        lambda inputs: oracle.expected(inputs, {}, asked.workload),
        {"normal": normal},
    )


def _drawn(asked: Probe, oracle: ImportedOracle, regime: str, seed: int) -> Inputs:
    rng = np.random.default_rng([seed, 7])
    if regime in REGIMES:
        return oracle.make_inputs(asked.workload, rng, regime)
    return derive_inputs(
        asked.problem, oracle.make_inputs(asked.workload, rng, "normal"), rng, regime
    )


def _tried(asked: Probe, oracle: ImportedOracle, regime: str) -> str | None:
    try:
        inputs = _drawn(asked, oracle, regime, 1)
        first = oracle.expected(inputs, {}, asked.workload, _FIRST_SAMPLES)
        if _unfit(first, _OF_SPREAD / 10, near_zero=True) is None:
            return None
        return _unfit(oracle.expected(inputs, {}, asked.workload), near_zero=True)
    except ToolError as error:
        return str(error)


def _unfit(
    expected: Mapping[str, Expected], of_spread: float = _OF_SPREAD, *, near_zero: bool = False
) -> str | None:
    """Return why these results could not be judged; None if they can."""
    for name, entry in expected.items():
        rounded = np.asarray(entry.rounded, dtype=np.float64)
        if not (np.isfinite(entry.exact).all() and np.isfinite(rounded).all()):
            return f"{name} is not finite"
        if entry.slack is None or not entry.slack.size:
            continue
        spread = max(
            float(np.std(entry.exact)), _largest(entry.exact) if entry.exact.size == 1 else 0.0
        )
        budget = float(np.sqrt(np.mean(np.square(entry.slack))))
        if not np.isfinite(budget):
            return f"roundings of {name} leave no number"
        if budget > of_spread * spread and not (near_zero and spread == 0.0 == budget):
            return (
                f"roundings may move {name} by {budget:.2g}, and its results spread by {spread:.2g}"
            )
    return None


def _largest(values: npt.NDArray[np.floating[Any]]) -> float:
    return float(np.abs(values).max(initial=0.0))


def _has_rows(
    asked: Probe, oracle: ImportedOracle, inputs: Inputs, first: Mapping[str, Expected]
) -> bool:
    """Return whether the problem's row axis has rows that know nothing of one another."""
    axis = asked.problem.row_axis
    if axis is None or asked.workload.axes[axis] < 2:
        return False
    places = {t.name: t.shape.index(axis) for t in asked.problem.tensors if axis in t.shape}
    outputs = [one.name for one in asked.problem.tensors if one.role == "out"]
    if not all(name in places for name in outputs):
        return False
    rolled = {n: np.roll(a, 1, places[n]) if n in places else a for n, a in inputs.items()}
    other = _drawn(asked, oracle, "normal", 3)
    mixed = {n: _first_row(a, other[n], places[n]) if n in places else a for n, a in inputs.items()}
    after_roll = oracle.exact(rolled, asked.workload)
    after_mix = oracle.exact(mixed, asked.workload)
    for name in outputs:
        exact, place = first[name].exact, places[name]
        scale = _SAME * max(_largest(exact), 1e-300)
        if np.abs(np.roll(exact, 1, place) - after_roll[name]).max(initial=0.0) > scale:
            return False
        kept = np.delete(exact - after_mix[name], 0, place)
        if np.abs(kept).max(initial=0.0) > scale:
            return False
    return True


def _first_row(array: npt.NDArray[Any], other: npt.NDArray[Any], place: int) -> npt.NDArray[Any]:
    result = array.copy()
    np.moveaxis(result, place, 0)[0] = np.moveaxis(other, place, 0)[0]
    return result
