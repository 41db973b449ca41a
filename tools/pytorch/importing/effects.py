"""Whether a check could tell that a kernel does not read an input.

Inputs are drawn twice beside the same parameters: all of them, and each alone. A kernel that does
not read what was drawn again has one answer for both draws, at best the middle of the two right
ones. Where the gates of a check accept the middle for either draw, in every regime, a kernel that
is wrong could pass for right.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

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
    effects = {(output, group): Effect.NONE for output in trial.outputs for group in groups}
    for regime in regimes:
        for seed in _SEEDS:
            for group in groups:
                if any(effects[output, group] < Effect.SEEN for output in trial.outputs):
                    for output, effect in _effects(trial, group, regime, seed).items():
                        effects[output, group] = max(effects[output, group], effect)
    faults = [*_dull_outputs(effects, everything), *_dull_inputs(effects, everything)]
    if faults:
        raise UnjudgeableFunction("; ".join(faults) + f": {ADVICE}", "degenerate")
    return tuple(name for name in trial.inputs if name not in moving)


def _is_redrawn(trial: EffectTrial, name: str, regime: str) -> bool:
    first = trial.draw(regime, 1)[name]
    return any(not np.array_equal(first, trial.draw(regime, seed)[name]) for seed in _SEEDS)


def _effects(trial: EffectTrial, group: Group, regime: str, seed: int) -> dict[str, Effect]:
    """Return the effect of drawing a group again on each output; none where there is no answer."""
    first, other = trial.draw(regime, 1), trial.draw(regime, seed)
    try:
        before = trial.before(regime)
        after = trial.answer(first | {name: other[name] for name in group})
    except ToolError:
        return {}
    return {name: effect_on(trial.problem, name, before[name], after[name]) for name in before}


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


def _dull_outputs(effects: Mapping[tuple[str, Group], Effect], everything: Group) -> list[str]:
    found: list[str] = []
    for (output, group), effect in effects.items():
        if group == everything and effect == Effect.NONE:
            found.append(
                f"output {output} is the same for all inputs, a speedup here means nothing"
            )
        elif group == everything and effect == Effect.DROWNED:
            found.append(_drowned(output, group))
    return found


def _dull_inputs(effects: Mapping[tuple[str, Group], Effect], everything: Group) -> list[str]:
    """Return what is to be said of single inputs, of outputs that the inputs together change."""
    found: list[str] = []
    for name in everything if len(everything) > 1 else ():
        of_it = {output: effect for (output, group), effect in effects.items() if group == (name,)}
        if not any(of_it.values()):
            found.append(
                f"input {name} has no effect on any output, and a check would not notice a kernel"
                " that misuses it (leave an unused argument out of the function)"
            )
        found.extend(
            _drowned(output, (name,))
            for output, effect in of_it.items()
            if effect == Effect.DROWNED and effects[output, everything] == Effect.SEEN
        )
    return found


def _drowned(output: str, group: Group) -> str:
    names = f"input{'s' if len(group) > 1 else ''} {', '.join(group)}"
    return (
        f"output {output} hardly depends on {names}: other values change it by less than roundings"
        " may, so a wrong answer could pass for right"
    )
