"""The questions that are asked of the made-up worlds, and the figures that answer them.

A unit is a world: everything in it is compared within it, and intervals are bootstrapped over
worlds. Kernels are those on which a search that knows all gains reaches the goal.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from random import Random
from statistics import fmean
from typing import TypeVar

from learning_search import Climb, Task, catalogue, climb, shortest, with_lies, with_priors
from learning_world import ARCHITECTURES, Assumptions, Kernel, make_world

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Predictor, Situation
from kopt.search.knowledge.records import Sample

RESAMPLES = 2000
ARMS = ("off", "priors", "learned", "both", "lies")
LEARNED_ON, USED_ON = ARCHITECTURES


@dataclass(frozen=True)
class Scale:
    """How much is simulated."""

    worlds: int = 16
    kernels: int = 40
    """One after the other in each world."""
    seed: str = "a"
    steps: int | None = None
    """Of a trajectory; None: climb."""


_Unit = TypeVar("_Unit")
Climbs = Sequence[Sequence[Climb]]
"""World, kernel."""


@dataclass(frozen=True)
class Mean:
    """A mean, or a ratio of means, with its 95 % interval over worlds."""

    value: float
    low: float
    high: float


def memory(
    scale: Scale, assumed: Assumptions, right: float = 0.5, arms: Sequence[str] = ARMS
) -> dict[str, Climbs]:
    """Return what searches of the same kernels come to.

    `off`: no memory. `priors`: the priors alone, nothing is learned. `learned`: from nothing, from
    kernel to kernel. `both`: learned on top of the priors. `lies`: on top of priors that are wrong.

    Args:
        scale: How much to simulate.
        assumed: What the worlds are like.
        right: Share of the priors that gain; `Assumptions.good` is no better than chance.
        arms: Which of them.
    """
    found: dict[str, list[list[Climb]]] = {arm: [] for arm in arms}
    for task in tasks(scale, assumed, USED_ON):
        empty = catalogue(task.world)
        expecting = with_priors(empty, task.world, right)
        lied = with_lies(empty, task.world, task.arch)
        bases = {
            "off": empty,
            "priors": expecting,
            "learned": empty,
            "both": expecting,
            "lies": lied,
        }
        kernels = list(reachable(task, scale.kernels))
        for arm in arms:
            learns = arm not in ("off", "priors")
            found[arm].append(one_after_another(task, kernels, bases[arm], learns))
    return dict(found)


def transfer(scale: Scale, assumed: Assumptions, before: int) -> dict[str, Climbs]:
    """Return what searches on an architecture come to, `transferred` after `before` on another."""
    found: dict[str, list[list[Climb]]] = {"off": [], "learned": [], "transferred": []}
    elsewhere = tasks(scale, assumed, LEARNED_ON)
    for task, other in zip(tasks(scale, assumed, USED_ON), elsewhere, strict=True):
        empty = catalogue(task.world)
        kernels = list(reachable(task, scale.kernels))
        earlier = list(reachable(other, before, skip=1000))
        learned = one_after_another(other, earlier, empty, True)[-1].base
        found["off"].append(one_after_another(task, kernels, empty, False))
        found["learned"].append(one_after_another(task, kernels, empty, True))
        found["transferred"].append(one_after_another(task, kernels, learned, True))
    return dict(found)


def tasks(scale: Scale, assumed: Assumptions, arch: str) -> Iterator[Task]:
    """Yield one task a world."""
    for number in range(scale.worlds):
        yield Task(make_world(f"{scale.seed}{number}", assumed), arch, steps=scale.steps)


def reachable(task: Task, count: int, skip: int = 0) -> Iterator[Kernel]:
    """Yield `count` kernels on which the goal can be reached, from number `skip` on."""
    number = skip
    while count:
        kernel = task.world.kernel(number)
        number += 1
        if shortest(task, kernel) is not None:
            count -= 1
            yield kernel


def one_after_another(
    task: Task, kernels: Sequence[Kernel], base: KnowledgeBase, learns: bool
) -> list[Climb]:
    """Return the searches of `kernels`, each with what the ones before it learned."""
    found: list[Climb] = []
    for kernel in kernels:
        found.append(climb(task, kernel, base, learns))
        base = found[-1].base
    return found


def ratio(over: Climbs, under: Climbs, kernels: slice = slice(None)) -> Mean:
    """Return how many times the candidates of `under` `over` needs, over all kernels together."""
    pairs = [
        (_candidates(one[kernels]), _candidates(other[kernels]))
        for one, other in zip(over, under, strict=True)
    ]
    return bootstrapped(pairs, lambda some: sum(a for a, _ in some) / sum(b for _, b in some))


def typical_ratio(over: Climbs, under: Climbs, kernels: slice = slice(None)) -> Mean:
    """Return the geometric mean over kernels of how many times the candidates `over` needs."""
    logs = [
        fmean(
            log(a.candidates / b.candidates)
            for a, b in zip(one[kernels], other[kernels], strict=True)
        )
        for one, other in zip(over, under, strict=True)
    ]
    return bootstrapped(logs, lambda some: exp(fmean(some)))


def mean_of(climbs: Climbs, kernels: slice, of: Callable[[Climb], float]) -> Mean:
    """Return the mean over worlds of the mean of `of` over some kernels."""
    values = [fmean(of(one) for one in world[kernels]) for world in climbs]
    return bootstrapped(values, fmean)


def bootstrapped(units: Sequence[_Unit], of: Callable[[Sequence[_Unit]], float]) -> Mean:
    """Return `of` all units, and its 95 % percentile interval over resamples of them."""
    rng = Random(0)
    drawn = sorted(of(rng.choices(units, k=len(units))) for _ in range(RESAMPLES))
    return Mean(of(units), drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES)])


def errors_by_gains(scale: Scale, assumed: Assumptions, climbs: Climbs) -> dict[int, Mean]:
    """Return how far expected gains are from the truth, by how many gains they rest on, ln.

    Of every technique with an effect in a state: |expected - true|, in the last base of a world.
    The keys are the least numbers of gains and losses of a class: 0, 1, 2, 4, 8, 16.
    """
    classes: dict[int, list[float]] = {least: [] for least in (0, 1, 2, 4, 8, 16)}
    for task, world in zip(tasks(scale, assumed, USED_ON), climbs, strict=True):
        base = world[-1].base
        for state in base.states:
            reader = Predictor(base, Situation(task.arch, state))
            for technique in base.techniques:
                truth = task.world.effects[task.arch, state, technique]
                if truth:
                    gains = _gains(base, task.arch, (state, technique))
                    least = max(one for one in classes if one <= gains)
                    expected = reader.known((technique,)).belief.mean
                    classes[least].append(abs(expected - truth))
    return {least: bootstrapped(errors, fmean) for least, errors in classes.items() if errors}


def lied_share(climbs: Climbs, lies: Sequence[frozenset[tuple[str, str]]], part: slice) -> Mean:
    """Return the share of candidates that follow a promise that is wrong."""
    shares = [
        fmean(
            float((sample.state, sample.techniques[0]) in false)
            for one in world[part]
            for sample in one.samples
        )
        for world, false in zip(climbs, lies, strict=True)
    ]
    return bootstrapped(shares, fmean)


def false_promises(scale: Scale, assumed: Assumptions) -> list[frozenset[tuple[str, str]]]:
    """Return, for each world, state and technique of the wrong priors that promise a gain."""
    return [
        frozenset(
            (state, names[0])
            for (state, names), entry in with_lies(
                catalogue(task.world), task.world, task.arch
            ).entries.items()
            if entry.prior is not None and entry.prior.gain > 0
        )
        for task in tasks(scale, assumed, USED_ON)
    ]


def samples_of(climbs: Climbs, part: slice = slice(None)) -> list[Sample]:
    """Return the samples of some kernels of all worlds."""
    return [sample for world in climbs for one in world[part] for sample in one.samples]


def _gains(base: KnowledgeBase, arch: str, key: tuple[str, str]) -> int:
    entry = base.entries.get((key[0], (key[1],)))
    if entry is None or arch not in entry.evidence:
        return 0
    return sum(one.gained + one.lost for one in entry.evidence[arch].values())


def _candidates(climbs: Sequence[Climb]) -> float:
    return float(sum(one.candidates for one in climbs))
