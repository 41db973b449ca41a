"""Which inputs, poisons and schedules a level asks for, per workload.

quick: one visible seed of normal inputs under both poisons, natural schedule.
full:  every regime, spread over the visible and the hidden seeds, each run under the next schedule
       and the other poison; `zero_blocks` under both, for there any code may be right and only the
       pair tells whether it was written. Larger workloads have one visible and one hidden seed,
       the largest a hidden one alone.
       They meet `assorted` inputs, which have every regime in rows of one call, and, where no
       smaller workload has met them alone, those that depend on more than a row. Every workload
       meets hidden ordinary inputs with the problem's scalars, too: visible inputs are known to
       every author, so that code can be right on these alone.
"""

from dataclasses import dataclass
from itertools import cycle, islice
from random import Random

from kopt.kernels.case_inputs import ASSORTED, SINGLE_REGIMES
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.problem import Problem, Workload, tensor_size_bytes

from .unwritten_gate import POISONS

MEDIUM_BYTES = 2 << 20
"""Bytes of all tensors from which on a workload has one visible and one hidden seed."""
LARGE_BYTES = 16 << 20
"""Bytes of all tensors from which on an execution has more time."""

HIDDEN_SEEDS = 2

_NEEDS_BOTH_POISONS = "zero_blocks"
LEVEL_REGIMES: dict[CheckLevel, tuple[str, ...]] = {
    "quick": ("normal",),
    "full": ("normal", "mixed", "zero_blocks", "outliers", "tiny", "huge", "channels", "edges"),
}
"""Regimes that a level asks for, ordinary inputs first."""
_MANY_SCALES = "mixed"
"""What stands for `assorted` where a problem has no rows."""
_ORDINARY, *_SPECIAL = LEVEL_REGIMES["full"]
_ONLY_LARGE = ("zero_blocks", "edges", "channels")
"""What a domain of large workloads meets beside `assorted`, whose integers (masks) are ordinary."""
if set(LEVEL_REGIMES["full"]) != set(SINGLE_REGIMES):
    raise AssertionError("cases.py must place every regime of kernels/case_inputs.py")


@dataclass(frozen=True)
class Run:
    """One execution on one case's inputs."""

    poison: int
    schedule_seed: int


@dataclass(frozen=True)
class InputCase:
    """One set of inputs and the executions on it."""

    workload: Workload
    seed: int
    hidden: bool
    regime: str
    runs: tuple[Run, ...]
    drawn: bool = False
    """Whether the shape is none of the named workloads (hidden_shapes.py)."""
    keeps_scalars: bool = False
    """Whether scalars have the problem's values although the seed is hidden (scalars.py)."""
    scalars: tuple[tuple[str, float], ...] = ()
    """Scalars with another value than the problem's (scalars.py)."""

    @property
    def label(self) -> str:
        """What progress and diagnostics say; never a hidden seed."""
        seed = "a hidden seed" if self.hidden else f"seed {self.seed}"
        return f"{self.workload.name}, {self.regime} inputs, {seed}"


@dataclass(frozen=True)
class Seeds:
    """The seeds of a check."""

    visible: tuple[int, ...]
    hidden: tuple[int, ...] = ()


def buffer_bytes(problem: Problem, workload: Workload) -> int:
    """Return the bytes of all tensors, padding included."""
    return sum(tensor_size_bytes(tensor, workload.axes) for tensor in problem.tensors)


def plan_cases(
    problem: Problem,
    workloads: tuple[Workload, ...],
    level: CheckLevel,
    seeds: Seeds,
    regimes: tuple[str, ...] = SINGLE_REGIMES,
) -> tuple[InputCase, ...]:
    """Return every case of a check, small workloads first so that a wrong kernel is known soon.

    Workloads that are there to be timed come last, and have the cases of large ones. No case has a
    regime that is not among `regimes`.
    """
    if level == "quick":
        runs = tuple(Run(poison, 0) for poison in POISONS)
        return tuple(
            InputCase(workload, seeds.visible[0], hidden=False, regime=regime, runs=runs)
            for workload in workloads
            for regime in LEVEL_REGIMES["quick"]
        )
    ordered = sorted(workloads, key=lambda one: (one.use == "time", buffer_bytes(problem, one)))
    served = (ASSORTED, *regimes)
    small = tuple(one for one in _SPECIAL if one in regimes) or (_ORDINARY,)
    cases: list[InputCase] = []
    for turn, workload in enumerate(ordered):
        if workload.use != "time" and buffer_bytes(problem, workload) <= MEDIUM_BYTES:
            cases += _cases(workload, seeds, turn, small)
            continue
        special = _special_of_large(problem, turn, is_first=not cases)
        asked = tuple(one for one in special if one in served)
        cases += _large_cases(problem, workload, seeds, asked)
    return tuple(cases)


def _special_of_large(problem: Problem, turn: int, *, is_first: bool) -> tuple[str, ...]:
    """Return the regimes that a large workload meets; the first of a domain meets all of them."""
    if problem.row_axis is not None:
        return (ASSORTED, *_ONLY_LARGE) if is_first else (ASSORTED,)
    return tuple(_SPECIAL) if is_first else (_MANY_SCALES, _SPECIAL[turn % len(_SPECIAL)])


def without_known(
    problem: Problem, cases: tuple[InputCase, ...], named: Workload
) -> tuple[InputCase, ...]:
    """Return the cases without visible ordinary inputs of large workloads that meet hidden ones.

    Hidden inputs of the same kind prove more; visible ones only let a report show values. The
    smallest workload, and the one that a call names, keep theirs.
    """
    kept = {named.name, *(case.workload.name for case in cases[:1])}
    met = {case.workload.name for case in cases if case.hidden and case.regime == _ORDINARY}
    return tuple(
        case
        for case in cases
        if case.hidden
        or case.regime != _ORDINARY
        or case.workload.name in kept
        or case.workload.name not in met
        or not is_large(problem, case.workload)
    )


def is_large(problem: Problem, workload: Workload) -> bool:
    """Return whether all tensors together pass `LARGE_BYTES`."""
    return buffer_bytes(problem, workload) > LARGE_BYTES


def _cases(
    workload: Workload, seeds: Seeds, turn: int, special: tuple[str, ...]
) -> list[InputCase]:
    """Return one case per regime and one per seed, whichever are more, then hidden ones.

    `turn` shifts the regimes, so that over a domain the hidden seeds meet each of them. The last
    cases have the problem's own scalars, one of them ordinary inputs and one a regime of the draw.
    """
    pool = [(seed, False) for seed in seeds.visible] + [(seed, True) for seed in seeds.hidden]
    count = max(len(pool), 1 + len(special))
    shift = turn % len(special)
    regimes = (_ORDINARY, *islice(cycle((*special[shift:], *special[:shift])), count - 1))
    cases: list[InputCase] = []
    schedule = 0
    for (seed, hidden), regime in zip(islice(cycle(pool), count), regimes, strict=True):
        poisons = POISONS if regime == _NEEDS_BOTH_POISONS else (POISONS[schedule % 2],)
        runs = tuple(Run(poison, schedule + i) for i, poison in enumerate(poisons))
        schedule += len(runs)
        cases.append(InputCase(workload, seed, hidden=hidden, regime=regime, runs=runs))
    drawn = Random(f"{seeds.hidden}/{workload.name}").choice(special)
    for seed, regime in zip(seeds.hidden, (_ORDINARY, drawn), strict=False):
        runs = (Run(POISONS[schedule % 2], schedule),)
        schedule += 1
        cases.append(InputCase(workload, seed, True, regime, runs, keeps_scalars=True))
    return cases


def _large_cases(
    problem: Problem, workload: Workload, seeds: Seeds, special: tuple[str, ...]
) -> list[InputCase]:
    """Return ordinary inputs of either seed, then those of `special`, a hidden seed first."""
    hidden = (seeds.hidden[0], True) if seeds.hidden else (seeds.visible[-1], False)
    pool = cycle((hidden, (seeds.visible[0], False)))
    cases = [InputCase(workload, seeds.visible[0], False, _ORDINARY, (Run(POISONS[0], 0),))]
    if seeds.hidden:
        once = (Run(POISONS[1], 1),)
        ordinary = InputCase(workload, seeds.hidden[0], True, _ORDINARY, once, keeps_scalars=True)
        cases.append(ordinary)
    schedule = len(cases)
    for (seed, is_hidden), regime in zip(pool, special, strict=False):
        # Codes under a scale of 0 may be anything: one kind of inputs with such runs under both.
        is_scaled = regime == ASSORTED and problem.tolerance == "nvfp4"
        twice = regime == _NEEDS_BOTH_POISONS or (is_scaled and _NEEDS_BOTH_POISONS not in special)
        poisons = POISONS if twice else (POISONS[schedule % 2],)
        runs = tuple(Run(poison, schedule + i) for i, poison in enumerate(poisons))
        schedule += len(runs)
        cases.append(InputCase(workload, seed, is_hidden, regime, runs))
    return cases
