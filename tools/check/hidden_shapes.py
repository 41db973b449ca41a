"""Shapes that no author can know: drawn after the build among those that the header claims.

A kernel serves more shapes than the named workloads: every one for which `where` holds. A full
check therefore runs row counts of its own too, small ones, such as no vector, warp or tile divides,
round ones, and a larger one as far as an eighth of the other cases' bytes allows. Only what the
built cubins serve is drawn: an axis that is compiled in (`specialize`) keeps its values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.case import Case
from kopt.kernels.compile_result import Build, CompileResult
from kopt.kernels.domain import claims, named_where, narrowed_where
from kopt.kernels.expressions import expression_names
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem, Workload, make_workload
from kopt.kernels.record import Diagnostic
from kopt.kernels.yaml_types import Mistake
from kopt.tools.cuda.planned_build import PlannedBuild, checked_plans

from .cases import InputCase, Run, buffer_bytes
from .unwritten_gate import POISONS

_Kind = Literal["odd", "even", "round", "any"]
_ROWS: tuple[tuple[range, _Kind], ...] = (
    (range(1, 2), "odd"),
    (range(2, 8), "odd"),
    (range(2, 8), "even"),
    (range(9, 33), "any"),
    (range(129, 160), "odd"),
    (range(33, 129), "any"),
)
"""One row count is drawn from each, of this kind first: what divides no warp, what is just beyond
128, and what callers often have, so that no count is safe from a draw."""
_LARGER = range(160, 4_160)
"""One more from here, as the cost allows: of all sizes alike often."""
_TRIES = 32
"""How often a larger count is drawn until one is claimed."""
_ROUND = 32
"""A multiple of this is a round number of many rows, a multiple of half of it one of few."""
_SHARE, _FLOOR_BYTES = 0.125, 8 << 20
"""The drawn cases take this share of the other cases' bytes, or so many bytes if that is more."""
_REGIMES = ("normal", "outliers", "mixed", "tiny")


@dataclass(frozen=True)
class HiddenShapes:
    """The candidate at drawn shapes."""

    case: Case
    """Its problem has the drawn shapes as workloads, beside the named ones."""
    compiled: CompileResult
    """Its builds serve them too."""
    plans: dict[str, LaunchPlan]
    """By workload name; of the drawn shapes alone, before `CheckPlans.final`."""
    cases: tuple[InputCase, ...]


@dataclass
class _Draw:
    """One drawing: what it is for, and what was drawn so far."""

    case: Case
    builds: Sequence[Build]
    gpu: GpuSpec
    rng: Random
    left_bytes: float
    plans: dict[str, LaunchPlan] = field(default_factory=dict[str, LaunchPlan])
    served: dict[str, Build] = field(default_factory=dict[str, Build])
    shapes: list[Workload] = field(default_factory=list[Workload])

    def one_of(self, axis: str, values: Sequence[int], kind: _Kind) -> None:
        """Take the first shape that is claimed and affordable, values of the kind first.

        Where any value will do, round ones come first every second time.
        """
        if kind == "any":
            kind = self.rng.choice(("any", "round"))
        for value in sorted(self.rng.sample(values, len(values)), key=_LAST[kind]):
            for base in self._bases(axis):
                if self._takes(base, {axis: value}):
                    return

    def larger_one(self, axis: str) -> None:
        """Take a shape between the small ones and the largest that the rest of the bytes allows."""
        for base in self._bases(axis):
            fits = self._fitting(base, axis)
            if fits < _LARGER.start:
                continue
            for _ in range(_TRIES):
                value = int(_LARGER.start * (fits / _LARGER.start) ** self.rng.random())
                value -= self.rng.choice((0, value % _ROUND))
                if self._takes(base, {axis: value}):
                    return

    def _fitting(self, base: Workload, axis: str) -> int:
        try:
            one = make_workload(self.case.problem, {**base.axes, axis: 64})
        except Mistake:
            return 0
        each = buffer_bytes(self.case.problem, one) / 64
        return min(int(self.left_bytes / each), _LARGER.stop - 1)

    def _bases(self, axis: str) -> list[Workload]:
        """Return workloads of the domain with other axes or scalars, in an order of the draw.

        Those that are there to be timed take no part while others are there.
        """
        variables = self.case.problem.variable_axes
        domain = self.case.domain
        kept = {
            (
                tuple(entry.axes[name] for name in variables if name != axis),
                tuple(sorted(entry.scalars.items())),
            ): entry
            for entry in tuple(one for one in domain if one.use != "time") or domain
        }
        return self.rng.sample(list(kept.values()), len(kept))

    def _takes(self, base: Workload, given: Mapping[str, int]) -> bool:
        """Take `base` with other axes if it is affordable, claimed, and served by a build."""
        problem = self.case.problem
        try:
            shape = make_workload(problem, {**base.axes, **given}, base.scalars)
        except Mistake:
            return False
        known = (*problem.workloads, *self.shapes)
        is_known = any(shape.name == one.name or shape.axes == one.axes for one in known)
        cost = buffer_bytes(problem, shape)
        if is_known or cost > self.left_bytes or not self._is_served(shape):
            return False
        self.left_bytes -= cost
        self.shapes.append(shape)
        return True

    def _is_served(self, shape: Workload) -> bool:
        header = self.case.header
        if header is None or not claims(header, self.case.problem, shape.axes):
            return False
        here = self.case.with_shapes((shape,)).at(shape)
        plan = resolve_plan(here, self.gpu).plan
        build = None if plan is None else _build_of(plan, self.builds)
        if plan is None or build is None:
            return False
        planned = PlannedBuild(self.gpu.arch, self.gpu, (plan,))
        if checked_plans(planned, build.kernels, here)[1]:
            return False
        self.plans[shape.name], self.served[shape.name] = plan, build
        return True


def draw_hidden_shapes(
    case: Case,
    compiled: CompileResult,
    gpu: GpuSpec,
    cases: Sequence[InputCase],
    regimes: Sequence[str] = _REGIMES,
) -> HiddenShapes:
    """Return the shapes that a full check draws, and one case for each.

    Args:
        case: The candidate; its header parses.
        compiled: Its builds for `gpu`.
        gpu: What its plans are made for.
        cases: The cases of the named workloads; their hidden seeds decide what is drawn.
        regimes: Those that the problem's oracle serves.
    """
    seeds = list(dict.fromkeys(one.seed for one in cases if one.hidden))
    total = sum(
        buffer_bytes(case.problem, one.workload) * len(one.runs)
        for one in cases
        if one.workload.use != "time"
    )
    budget = max(_SHARE * total, _FLOOR_BYTES)
    draw = _Draw(case, compiled.builds, gpu, Random(f"{seeds}/shapes"), budget)
    for axis in row_like_axes(case.problem) if seeds else ():
        for values, kind in _ROWS:
            draw.one_of(axis, values, kind)
        draw.larger_one(axis)
    builds = tuple(_serving(build, draw.served) for build in compiled.builds)
    return HiddenShapes(
        case=case.with_shapes(draw.shapes),
        compiled=compiled.model_copy(update={"builds": builds}),
        plans=draw.plans,
        cases=tuple(_cases(draw.shapes, seeds, draw.rng, regimes)),
    )


def row_like_axes(problem: Problem) -> tuple[str, ...]:
    """Return the variable axes that count pieces: rows first, then heads, rows of an expert.

    These are the row axis and those that stand last in no tensor, nor decide what does. What stands
    last is a length that kernels read as vectors, and that codes and scales divide.
    """
    last = {tensor.shape[-1] for tensor in problem.tensors if len(tensor.shape) > 1}
    for axis, expression in reversed(problem.axes.items()):
        if axis in last and expression is not None:
            last |= expression_names(expression)
    first = (problem.row_axis,) if problem.row_axis in problem.variable_axes else ()
    others = (axis for axis in problem.variable_axes if axis not in {*last, *first})
    return (*first, *others)


def narrowing_note(case: Case, shape: str) -> Diagnostic:
    """Return what to do about a candidate that is right at the named workloads only.

    Args:
        case: The candidate; its header parses.
        shape: The drawn shape where it failed.
    """
    assert case.header is not None
    claimed = named_where(case.header, case.problem, row_like_axes(case.problem))
    return Diagnostic(
        severity="note",
        message=f"{shape} is no named workload but a shape drawn after the build:"
        f" `where` claims it ({case.header.where})",
        line=case.header.lines.get("where"),
        hint=f'fix it there, or claim the named shapes only: where: "{claimed}"',
    )


def claim_note(case: Case, workload: str) -> Diagnostic:
    """Return what to do about a candidate that failed at another workload than the one asked for.

    Args:
        case: The candidate; its header parses and claims several workloads.
        workload: Where it failed.
    """
    assert case.header is not None
    claimed = ", ".join(one.name for one in case.domain)
    alone = narrowed_where(case.header, case.problem, (case.workload,))
    return Diagnostic(
        severity="note",
        message=f"{workload} is not the workload that was asked for, but `where` claims it"
        f" ({case.header.where}: {claimed})",
        line=case.header.lines.get("where"),
        hint=f'fix it there, or claim {case.workload.name} alone: where: "{alone}"',
    )


def _evenness(value: int) -> int:
    """Return how many of 2, 4 and 8 divide `value`."""
    return sum(value % divisor == 0 for divisor in (2, 4, 8))


_LAST: dict[_Kind, Callable[[int], int]] = {
    "odd": _evenness,
    "even": lambda value: value % 2,
    "round": lambda value: value % (_ROUND // 2) != 0,
    "any": lambda value: 0,
}
"""Sort keys by kind: what is of it comes first."""


def _build_of(plan: LaunchPlan, builds: Sequence[Build]) -> Build | None:
    return next((build for build in builds if build.defines == plan.defines), None)


def _serving(build: Build, served: Mapping[str, Build]) -> Build:
    names = tuple(name for name, one in served.items() if one is build)
    return build.model_copy(update={"workloads": (*build.workloads, *names)})


def _cases(
    shapes: Sequence[Workload], seeds: Sequence[int], rng: Random, served: Sequence[str]
) -> Iterator[InputCase]:
    """Yield a case for each shape; every second one has the problem's own scalars."""
    regimes = [one for one in rng.sample(_REGIMES, len(_REGIMES)) if one in served]
    own = rng.randrange(2)
    for place, shape in enumerate(shapes):
        yield InputCase(
            shape,
            seeds[place % len(seeds)],
            hidden=True,
            regime=regimes[place % len(regimes)],
            runs=(Run(POISONS[place % 2], place),),
            drawn=True,
            keeps_scalars=place % 2 == own,
        )
