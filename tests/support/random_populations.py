"""Random populations as a search could leave them behind, each from a seed."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kopt.kernels.status import Status
from kopt.search.records.evaluation import FAMILY_CONTRADICTED, NOISE_FLOOR, Evaluation
from kopt.search.records.members import LineageKind, Member

from .populations import failed, member, passed, timed, with_value

FAMILIES = ("layout", "algebra", "reduction", "coarsening", "persistent", "vectorization")
FAILURES = (Status.COMPILE_ERROR, Status.INCORRECT, Status.TIMEOUT, Status.QUARANTINED)
KINDS: tuple[LineageKind, ...] = ("refine", "refine", "expand", "cross", "tune", "combine")


def random_population(seed: int, measured: bool | None = None) -> list[Member]:
    """Return the members of several rounds: branches with their fixes, sweeps, refuted ones.

    Args:
        seed: Decides everything.
        measured: Whether times are speedups with intervals, else estimates; None: the seed says.
    """
    draw = random.Random(seed)
    on_gpu = draw.random() < 0.6 if measured is None else measured
    families = draw.sample(FAMILIES, draw.randint(1, len(FAMILIES)))
    members = [member(0, _evaluation(draw, on_gpu), family=families[0], proposer="start")]
    for index in range(1, draw.randint(1, 6)):
        for branch in range(draw.randint(1, 8)):
            _add_branch(draw, members, f"r{index}/b{branch}", (families, on_gpu))
    return members


def in_another_order(members: Sequence[Member], seed: int) -> list[Member]:
    """Return the same candidates as if the branches of each round had ended in another order."""
    draw = random.Random(seed)
    start, later = members[0], list(members[1:])
    draw.shuffle(later)
    later.sort(key=lambda one: (one.round, one.attempt))
    moved = [start, *later]
    numbers = {one.seq: place for place, one in enumerate(moved)}
    return [
        replace(one, seq=numbers[one.seq], parents=tuple(numbers[seq] for seq in one.parents))
        for one in moved
    ]


def _add_branch(
    draw: random.Random, members: list[Member], branch: str, world: tuple[Sequence[str], bool]
) -> None:
    families, on_gpu = world
    index = int(branch[1])
    earlier = [one for one in members if one.round < index]
    lineage = draw.choice(KINDS)
    parents = draw.sample(earlier, min(len(earlier), 2 if lineage in ("cross", "combine") else 1))
    family = parents[0].family if lineage == "refine" else draw.choice(families)
    fields: dict[str, Any] = {"branch": branch, "round": index, "family": family}
    fields |= {"lineage": lineage, "parents": tuple(one.seq for one in parents)}
    for attempt in range(draw.randint(1, 3)):
        fields["source"] = "x" * draw.randint(1, 9)
        evaluation = None if draw.random() < 0.03 else _evaluation(draw, on_gpu)
        made = member(len(members), evaluation, attempt=attempt, **fields)
        members.append(_judged_later(draw, made, on_gpu))
        if made.passed:
            return
        fields |= {"lineage": "fix", "parents": (made.seq,)}


def _judged_later(draw: random.Random, made: Member, on_gpu: bool) -> Member:
    """Return the candidate with a full check or a second measurement, now and then."""
    if made.passed and draw.random() < 0.08:
        return replace(made, full=draw.choice([failed(), _evaluation(draw, on_gpu)]))
    if made.passed and on_gpu and draw.random() < 0.15:
        return replace(made, tie=draw.choice([failed(), _timed(draw, 0.002)]))
    return made


def _evaluation(draw: random.Random, on_gpu: bool) -> Evaluation:
    if draw.random() < 0.3:
        return failed(draw.choice(FAILURES))
    if draw.random() < 0.04:
        return Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")
    if on_gpu:
        found = with_value(_timed(draw, draw.choice((0.001, 0.01, 0.1))), NOISE_FLOOR, 0.003)
    else:
        tenths_us = draw.randint(10, 40)  # equal times now and then are of the same program
        program = f"takes {tenths_us}" if draw.random() < 0.5 else None
        found = passed(tenths_us / 10, program, registers=draw.choice((32, 64)))
    return with_value(found, FAMILY_CONTRADICTED) if draw.random() < 0.1 else found


def _timed(draw: random.Random, half_width: float) -> Evaluation:
    found = timed(1.0, round(draw.uniform(0.7, 2.0), 3), half_width=half_width)
    program = draw.choice(("p", "q", "r")) if draw.random() < 0.2 else None
    return found.model_copy(update={"equivalence": program})
