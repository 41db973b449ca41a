"""How far the trajectories of a run have come: rollouts of single techniques from the same start.

Pure: told by the branches and candidates of the run alone, whichever process made them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kopt.config.search_settings import SearchSettings
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow

from .lineages import outcome_of
from .ranking import rank_unrefuted, speed_of

_SLOT = re.compile(r"t(\d+)s(\d+)a(\d+)")


@dataclass(frozen=True)
class Trajectory:
    """One rollout."""

    number: int
    """From 1."""
    program: int = 0
    """`seq` of the candidate that its next step begins with."""
    steps: int = 0
    """Taken so far, those that led to nothing included."""
    has_gained: bool = False
    """Whether the last step made it faster by more than a change that is none."""
    is_finished: bool = False


def slot_id(trajectory: int, step: int, action: int) -> str:
    """Return the id of a slot of a round: `t2s3a1`, all from 1."""
    return f"t{trajectory}s{step}a{action}"


def trace_trajectories(
    members: Sequence[Member],
    branches: Sequence[BranchRow],
    settings: SearchSettings,
    preparing: Collection[str] = (),
) -> tuple[Trajectory, ...]:
    """Return every trajectory of a run, as it stands after the steps that `branches` have taken.

    A step goes on from its best candidate if that is faster than the program before, else from
    that program; one that prepares other techniques need not be faster itself, only not slower.

    Args:
        members: All candidates of the run.
        branches: Of closed rounds.
        settings: How many there are, and how long.
        preparing: Techniques that prepare others.
    """
    steps = _steps(branches)
    traced: list[Trajectory] = []
    for number in range(1, settings.maic_rl.trajectories + 1):
        trajectory = Trajectory(number)
        for _, rows in sorted(steps.get(number, {}).items()):
            trajectory = _after(trajectory, _best(rows, members), (members, settings, preparing))
        traced.append(trajectory)
    return tuple(traced)


def _steps(branches: Sequence[BranchRow]) -> Mapping[int, Mapping[int, list[BranchRow]]]:
    """Return the branches of each step of each trajectory."""
    found: dict[int, dict[int, list[BranchRow]]] = defaultdict(lambda: defaultdict(list))
    for row in branches:
        slot = _SLOT.fullmatch(row.slot)
        if slot is not None:
            found[int(slot[1])][int(slot[2])].append(row)
    return found


def _best(rows: Sequence[BranchRow], members: Sequence[Member]) -> Member | None:
    """Return the best candidate of a step; None where none works."""
    made = [members[row.candidate] for row in rows if row.candidate is not None]
    return next(iter(rank_unrefuted(made)), None)


def _after(
    trajectory: Trajectory,
    best: Member | None,
    run: tuple[Sequence[Member], SearchSettings, Collection[str]],
) -> Trajectory:
    """Return a trajectory one step later."""
    members, settings, preparing = run
    before = members[trajectory.program]
    taken = replace(trajectory, steps=trajectory.steps + 1, has_gained=False)
    if best is not None:
        outcome = outcome_of(best, before, settings.min_effect)
        prepares = outcome == "stagnant" and any(one in preparing for one in best.techniques)
        if outcome == "improved" or prepares or _is_faster(best, before):
            taken = replace(taken, program=best.seq, has_gained=outcome == "improved")
    most = settings.maic_rl.most_steps if taken.has_gained else settings.maic_rl.steps
    return replace(taken, is_finished=taken.steps >= most)


def _is_faster(one: Member, other: Member) -> bool:
    """Return whether the intervals leave no doubt that `one` is the faster program."""
    speed, before = speed_of(one), speed_of(other)
    return speed is not None and before is not None and speed.is_above(before)
