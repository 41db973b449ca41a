"""A search through the made-up world, with the real selector and the real update.

It climbs: one candidate at a time, kept if it is surely faster. A program from which as many tries
as there are techniques gained nothing is left for the one that it was made from. Or it goes by
trajectories, as `strategy: maic_rl`: each begins at the starting program, has some steps, and goes
on up to twice as many while it gains. Climbing is kinder to a search without memory.
"""

from dataclasses import dataclass, replace
from random import Random

from learning_world import CLEAR, Attempt, Kernel, Program, World

from kopt.kernels.profile_result import BottleneckName
from kopt.kernels.status import Provenance, Status
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.evidence import SIGMAS
from kopt.search.knowledge.policy.posterior import Situation
from kopt.search.knowledge.policy.selector import Drawn, draw
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import KnowledgeEntry, Outcome, Prior, Sample, State, Technique

BOTTLENECKS: tuple[BottleneckName, ...] = (
    "memory_bound",
    "latency_bound",
    "compute_bound",
    "launch_bound",
    "occupancy_limited",
    "l2_bound",
    "l1_bound",
)


@dataclass(frozen=True)
class Task:
    """Where to search, for what, and how long at most."""

    world: World
    arch: str
    goal: float = 0.405
    """ln ratio over the starting program, as it truly is: 1.5x."""
    most: int = 100
    """Candidates for a kernel."""
    steps: int | None = None
    """Of a trajectory; None: climb."""


@dataclass(frozen=True)
class Climb:
    """What a search of one kernel came to."""

    candidates: int
    """To the goal, or `most`."""
    reached: bool
    regrets: tuple[float, ...]
    """Of each draw: true value of the best technique less that of the drawn one, ln."""
    samples: tuple[Sample, ...]
    base: KnowledgeBase
    """With what was learned."""


def climb(task: Task, kernel: Kernel, base: KnowledgeBase, learns: bool) -> Climb:
    """Search `kernel` from its starting program."""
    way = [Program(kernel.start)]
    allowed = [base.techniques[name] for name in kernel.allowed]
    samples: list[Sample] = []
    regrets: list[float] = []
    step = 0
    while way[-1].gain < task.goal and len(samples) < task.most:
        program, number = way[-1], len(samples) + 1
        used = (*program.applied, *program.tried)
        situation = Situation(task.arch, program.state, program.previous, used)
        (drawn,) = draw(base, situation, allowed, 1, f"{task.arch}/{kernel.name}/{number}")
        values = [task.world.value(task.arch, kernel, program, one) for one in kernel.allowed]
        name = drawn.technique.id
        regrets.append(max(values) - task.world.value(task.arch, kernel, program, name))
        attempt = task.world.tried(task.arch, kernel, program, name)
        sample = _sample(task, f"{kernel.name}/{number}", (program, drawn), attempt)
        samples.append(sample)
        if learns:
            base = extend(base, [(base.version + 1, sample)], base.version + 1)
        _go_on(way, sample, attempt)
        step += 1
        if task.steps is None and len(way[-1].tried) >= len(allowed):
            del way[max(1, len(way) - 1) :]
        elif task.steps is not None and _has_ended(task.steps, step, sample):
            del way[1:]
            step = 0
    reached = way[-1].gain >= task.goal
    return Climb(len(samples), reached, tuple(regrets), tuple(samples), base)


def _go_on(way: list[Program], sample: Sample, attempt: Attempt) -> None:
    """Note the try with its program, and go on from the child if it is surely faster."""
    (name,) = sample.techniques
    way[-1] = replace(way[-1], tried=(*way[-1].tried, name))
    if sample.outcome == "gained" and attempt.child is not None:
        way.append(attempt.child)


def _has_ended(steps: int, step: int, last: Sample) -> bool:
    """Return whether a trajectory ends after its step number `step`."""
    return step >= 2 * steps or (step >= steps and last.outcome != "gained")


def shortest(task: Task, kernel: Kernel) -> int | None:
    """Return the candidates of a search that knows all gains; None if it does not get there."""
    program = Program(kernel.start)
    for number in range(1, task.most + 1):
        values = {
            name: task.world.value(task.arch, kernel, program, name) for name in kernel.allowed
        }
        best = max(kernel.allowed, key=lambda name: values[name])
        if values[best] <= CLEAR:
            return None
        attempt = task.world.tried(task.arch, kernel, program, best)
        program = attempt.child or replace(program, tried=(*program.tried, best))
        if program.gain >= task.goal:
            return number
    return None


def _sample(task: Task, name: str, tried: tuple[Program, Drawn], attempt: Attempt) -> Sample:
    program, drawn = tried
    half = SIGMAS * task.world.assumed.noise
    measured = attempt.measured
    return Sample(
        id=f"{task.arch}/{name}",
        run=task.arch,
        kernel=name.split("/")[0],
        op_type="made_up",
        arch=task.arch,
        device="made up",
        toolkit="none",
        state=program.state,
        techniques=(drawn.technique.id,),
        previous=program.previous,
        before="+".join(program.applied) or "start",
        after=name,
        predicted=drawn.prediction.gain,
        predicted_interval=drawn.prediction.interval,
        measured=measured,
        interval=None if measured is None else (measured - half, measured + half),
        provenance=Provenance.MEASURED,
        outcome=_outcome(measured, half),
        status=Status.INCORRECT if measured is None else Status.PASSED,
        day="2026-01-01",
    )


def _outcome(measured: float | None, half: float) -> Outcome:
    if measured is None:
        return "failed"
    if abs(measured) <= max(half, CLEAR):
        return "within_noise"
    return "gained" if measured > 0 else "lost"


def catalogue(world: World) -> KnowledgeBase:
    """Return a base that knows the states and techniques of `world`, and no gain."""
    return KnowledgeBase(
        states={
            name: State(id=name, bottleneck=BOTTLENECKS[place % len(BOTTLENECKS)])
            for name, place in world.bottleneck_of.items()
        },
        techniques={
            name: Technique(
                id=name, family="other", category="general", description="", source="made up"
            )
            for name in world.techniques
        },
    )


def with_priors(base: KnowledgeBase, world: World, right: float) -> KnowledgeBase:
    """Return `base` with five priors a state, of which a share `right` gains on the first arch.

    The others are of techniques that do not gain; all promise 10 %, with the weight of one try.
    """
    entries = dict(base.entries)
    rng = Random(f"{world.seed}/priors")
    first = min(arch for arch, _, _ in world.effects)
    for state in world.bottleneck_of:
        gains = [one for one in world.techniques if world.effects[first, state, one] > 0]
        others = [one for one in world.techniques if one not in gains]
        count = min(len(gains), sum(rng.random() < right for _ in range(5)))
        for name in (*rng.sample(gains, count), *rng.sample(others, 5 - count)):
            prior = Prior(gain=0.1, weight=1.0, source="made up")
            entries[state, (name,)] = KnowledgeEntry(state=state, techniques=(name,), prior=prior)
    return replace(base, entries=entries)


def with_lies(base: KnowledgeBase, world: World, arch: str) -> KnowledgeBase:
    """Return `base` with priors that are all wrong, with the greatest weight.

    In every state five techniques that do not gain are said to gain 35 %, and all that gain are
    said to lose 10 %.
    """
    entries = dict(base.entries)
    rng = Random(f"{world.seed}/lies")
    for state in world.bottleneck_of:
        gains = [one for one in world.techniques if world.effects[arch, state, one] > 0]
        others = rng.sample([one for one in world.techniques if one not in gains], 5)
        for names, gain in ((others, 0.3), (gains, -0.1)):
            for name in names:
                prior = Prior(gain=gain, weight=2.0, source="made up")
                entries[state, (name,)] = KnowledgeEntry(
                    state=state, techniques=(name,), prior=prior
                )
    return replace(base, entries=entries)
