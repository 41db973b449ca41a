"""Whether a check could tell that a kernel does not read an input.

Inputs are drawn twice beside the same parameters: all of them, and each alone. A kernel that does
not read what was drawn again has one answer for both draws, at best the middle of the two right
ones. Where the gates of a check accept the middle for either draw, in every regime, a kernel that
is wrong could pass for right.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError, UnjudgeableFunction
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Problem
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judge import judge
from kopt.tools.check.reference import make_reference
from kopt.tools.pytorch.drawing import rounded_to

_SEEDS = (2, 3)
"""Draws that the first one is compared with: one alone may happen to be like it."""
_SAME = 1e-12
"""Relative change of float64 results that is their own rounding and no effect."""
ADVICE = (
    "give larger weights or inputs (--init, --inputs), another --dtype, or another shape by --small"
)

Group = tuple[str, ...]
"""Inputs that are drawn again together."""


class Effect(IntEnum):
    """How much a group of inputs changes an output."""

    NONE = 0
    DROWNED = 1
    """Less than the gates of a check leave to roundings."""
    SEEN = 2


class OutputChange(NamedTuple):
    """How far apart two right answers of an output are; of two changes the greater is clearer."""

    effect: Effect
    share: float = 0.0
    """`moved` over `allowed`."""
    moved: float = 0.0
    """Root mean square of the distances between the answers."""
    allowed: float = 0.0
    """Root mean square of the slack that roundings on the way have; 0 where it is not needed."""


@dataclass(frozen=True)
class EffectTrial:
    """A function whose inputs can be drawn again."""

    problem: Problem
    inputs: Group
    """Its arguments: no parameter, buffer or constant is drawn again."""
    draw: Callable[[str, int], Inputs]
    """Returns all tensors of a regime for a seed."""
    answer: Callable[[Arrays], Mapping[str, Expected]]
    known: dict[str, Mapping[str, Expected]] = field(
        default_factory=dict[str, Mapping[str, Expected]]
    )
    """Answers to the first draw of regimes, kept for those that come after."""

    def before(self, regime: str) -> Mapping[str, Expected]:
        """Return the answer to the first draw of a regime."""
        if regime not in self.known:
            self.known[regime] = self.answer(self.draw(regime, 1))
        return self.known[regime]

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what it returns."""
        return tuple(one.name for one in self.problem.tensors if one.role == "out")


def refuse_without_effect(trial: EffectTrial, regimes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the inputs that are the same in every draw of `regimes`: no kernel needs to read them.

    Raises:
        UnjudgeableFunction: A check would not notice a kernel that ignores inputs.
    """
    moving = {
        name for name in trial.inputs if any(_is_redrawn(trial, name, regime) for regime in regimes)
    }
    everything = tuple(name for name in trial.inputs if name in moving)
    groups = dict.fromkeys((everything, *((name,) for name in everything)))
    changes = {
        (output, group): OutputChange(Effect.NONE) for output in trial.outputs for group in groups
    }
    for regime in regimes:
        for seed in _SEEDS:
            for group in groups:
                if any(changes[output, group].effect < Effect.SEEN for output in trial.outputs):
                    for output, change in _changes(trial, group, regime, seed).items():
                        changes[output, group] = max(changes[output, group], change)
    faults = [*_dull_outputs(changes, everything), *_dull_inputs(changes, everything)]
    if faults:
        raise UnjudgeableFunction("; ".join(faults) + f": {ADVICE}", "degenerate")
    return tuple(name for name in trial.inputs if name not in moving)


def _is_redrawn(trial: EffectTrial, name: str, regime: str) -> bool:
    first = trial.draw(regime, 1)[name]
    return any(not np.array_equal(first, trial.draw(regime, seed)[name]) for seed in _SEEDS)


def _changes(trial: EffectTrial, group: Group, regime: str, seed: int) -> dict[str, OutputChange]:
    """Return what drawing a group again does to each output; nothing where there is no answer."""
    first, other = trial.draw(regime, 1), trial.draw(regime, seed)
    try:
        before = trial.before(regime)
        after = trial.answer(first | {name: other[name] for name in group})
    except ToolError:
        return {}
    return {name: _change(trial.problem, name, before[name], after[name]) for name in before}


def _change(problem: Problem, output: str, before: Expected, after: Expected) -> OutputChange:
    effect = effect_on(problem, output, before, after)
    if effect != Effect.DROWNED or before.slack is None or not before.slack.any():
        return OutputChange(effect)
    moved, allowed = _size(before.exact - after.exact), _size(before.slack)
    return OutputChange(effect, moved / allowed, moved, allowed)


def _size(values: npt.NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def effect_on(problem: Problem, output: str, before: Expected, after: Expected) -> Effect:
    """Return whether the gates tell two right answers of an output apart."""
    if not (np.isfinite(before.exact).all() and np.isfinite(after.exact).all()):
        return Effect.NONE
    change = np.abs(before.exact - after.exact).max(initial=0.0)
    if change <= _SAME * np.abs(before.exact).max(initial=0.0):
        return Effect.NONE
    if before.bit_exact and after.bit_exact:
        differs = not np.array_equal(before.rounded, after.rounded)
        return Effect.SEEN if differs else Effect.DROWNED
    dtype = problem.tensor(output).dtype
    middle = rounded_to((before.exact + after.exact) / 2, dtype)
    for entry in (before, after):
        references = {output: make_reference(problem, output, entry)}
        if judge(CaseData({}, references), {output: middle}, 0).finding is None:
            return Effect.DROWNED
    return Effect.SEEN


def _dull_outputs(
    changes: Mapping[tuple[str, Group], OutputChange], everything: Group
) -> list[str]:
    found: list[str] = []
    for (output, group), change in changes.items():
        if group == everything and change.effect == Effect.NONE:
            found.append(
                f"output {output} is the same for all inputs, a speedup here means nothing"
            )
        elif group == everything and change.effect == Effect.DROWNED:
            found.append(_drowned(output, group, change))
    return found


def _dull_inputs(changes: Mapping[tuple[str, Group], OutputChange], everything: Group) -> list[str]:
    """Return what is to be said of single inputs, of outputs that the inputs together change."""
    found: list[str] = []
    for name in everything if len(everything) > 1 else ():
        of_it = {output: one for (output, group), one in changes.items() if group == (name,)}
        if not any(one.effect for one in of_it.values()):
            found.append(
                f"input {name} has no effect on any output, and a check would not notice a kernel"
                " that misuses it (leave an unused argument out of the function)"
            )
        found.extend(
            _drowned(output, (name,), change)
            for output, change in of_it.items()
            if change.effect == Effect.DROWNED and changes[output, everything].effect == Effect.SEEN
        )
    return found


def _drowned(output: str, group: Group, change: OutputChange) -> str:
    names = f"input{'s' if len(group) > 1 else ''} {', '.join(group)}"
    return (
        f"output {output} hardly depends on {names}: other values change it by less than roundings"
        f" may{_figures(change)}, so a wrong answer could pass for right"
    )


def _figures(change: OutputChange) -> str:
    return f" ({change.moved:.2g} and {change.allowed:.2g})" if change.allowed else ""
