"""Kernels that kopt writes itself: what is proposed from which population, and in which runs."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.records.members import Member, Population, Proposal
from kopt.search.rounds.generated import GeneratingProposer
from kopt.search.rounds.sweep import SweepProposer
from kopt.tools.pytorch.generated import generated_kernels
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES
from support.populations import member, passed

pytestmark = pytest.mark.slow  # whole runs

KERNEL = "fused_add_rmsnorm_b8xh4096"
PROBLEM, WORKLOAD = find_kernel(KERNEL, None)


@cache
def _choices(source: str) -> Sequence[dict[str, int]]:
    return Case(PROBLEM, WORKLOAD, Candidate(source)).choices


@cache
def _proposer() -> GeneratingProposer:
    kernels = generated_kernels(PROBLEM, "sm_90a")
    assert kernels is not None
    return GeneratingProposer(kernels, SweepProposer(_choices), _choices)


def _population(members: Sequence[Member], width: int = 4) -> Population:
    ranked = sorted((one for one in members if one.passed), key=lambda one: one.latency_us or 0.0)
    last = max(one.round for one in members)
    return Population(last + 1, 0, tuple(members), tuple(ranked[:width]))


def _joined(
    members: Sequence[Member], proposals: Sequence[Proposal], cost: Callable[[Proposal], float]
) -> list[Member]:
    """Return the population after the proposals were evaluated."""
    number = max(one.round for one in members) + 1
    return [
        *members,
        *(
            member(
                len(members) + place,
                passed(cost(one)),
                round=number,
                source=one.source,
                source_sha=sha256(one.source.encode()).hexdigest(),
                source_name=one.source_name,
                tune=one.tune,
                parents=one.parents,
                proposer=one.proposer,
                techniques=one.techniques,
            )
            for place, one in enumerate(proposals)
        ),
    ]


def _cost(proposal: Proposal) -> float:
    """Return a time that half of the techniques shorten, and the largest ROW, too."""
    name = proposal.source_name
    gained = sum(one in name for one in ("cluster_sums", "dependent_launch", "fast_reciprocal"))
    lost = sum(one in name for one in ("streaming_access", "occupancy_bound"))
    return 10.0 - gained + lost + 64 / proposal.tune.get("ROW", 64)


def _start() -> Member:
    return member(0, passed(20.0), proposer="start")


def _first(count: int = 24) -> tuple[Proposal, ...]:
    return _proposer().propose(_population([_start()]), count)


def _applied(proposal: Proposal) -> frozenset[str]:
    return frozenset(proposal.source_name.removesuffix(".cu").split("-")[1:])


def test_first_round_has_no_technique_all_of_them_and_each_alone() -> None:
    every = _proposer().kernels.techniques
    plain, *others = _first()
    sets = [_applied(one) for one in others]
    assert _applied(plain) == set() and plain.parents == (0,)
    assert sets[0] == set(every)
    assert sets[1] == set(every) - {"cluster_sums"}
    assert sets[2:] == [{one} for one in every]
    assert {one.parents for one in others} == {(1,)}


def test_a_small_first_round_begins_with_the_most_promising() -> None:
    assert _first(3) == _first()[:3]


def _gains(_: Member, names: Sequence[str]) -> dict[str, float]:
    known = {"fast_reciprocal": 0.3, "dependent_launch": 0.1, "streaming_access": -0.2}
    return {name: known[name] for name in names if name in known}


def test_what_is_expected_to_gain_is_tried_together_before_all_else_is() -> None:
    population = replace(_population([_start()]), gains=_gains)
    plain, hoped, *_ = proposals = _proposer().propose(population, 24)
    assert _applied(plain) == set()
    assert _applied(hoped) == {"dependent_launch", "fast_reciprocal"}
    assert "each of which is expected to gain" in hoped.note
    alone = [name for one in proposals if len(_applied(one)) == 1 for name in _applied(one)]
    assert alone[:2] == ["fast_reciprocal", "dependent_launch"]
    assert alone[-1] == "streaming_access"


def test_the_techniques_with_most_to_gain_are_added_and_taken_away_first() -> None:
    every = _proposer().kernels.source(_proposer().kernels.techniques)
    (proposal,) = (one for one in _first() if one.source == every)
    members = _joined([_start()], [proposal], _cost)
    population = replace(_population(members), gains=_gains)
    first, *_ = _proposer().propose(population, 8)
    left_out = set(_proposer().kernels.techniques) - _applied(first)
    assert left_out == {"streaming_access"}


def test_every_name_tells_of_what_its_kernel_is_made() -> None:
    proposals = list(_first())
    members = _joined([_start()], proposals, _cost)
    proposals += [
        one for one in _proposer().propose(_population(members), 12) if one.proposer == "generated"
    ]
    for one in proposals:
        assert _proposer().kernels.source(_applied(one)) == one.source
        assert one.tune in _choices(one.source)


def test_a_technique_is_credited_where_it_alone_was_added_to_a_generated_kernel() -> None:
    plain, *others = _first()
    assert plain.techniques == ("vector_loads", "row_in_registers")
    for one in others:
        assert frozenset(one.techniques) == (_applied(one) if len(_applied(one)) == 1 else set())


def test_where_the_start_is_the_plain_kernel_all_others_are_made_from_it() -> None:
    plain = replace(_start(), source=_proposer().kernels.source(()))
    proposals = _proposer().propose(_population([plain]), 24)
    assert {one.parents for one in proposals} == {(0,)}
    assert all(_applied(one) for one in proposals)


def test_later_rounds_change_one_technique_and_sweep_by_halves() -> None:
    members = _joined([_start()], _first(), _cost)
    proposals = _proposer().propose(_population(members), 8)
    assert [one.proposer for one in proposals] == ["generated"] * 4 + ["sweep"] * 4
    for one in proposals[:4]:
        parent = members[one.parents[0]]
        before = frozenset(parent.source_name.removesuffix(".cu").split("-")[1:])
        assert len(_applied(one) ^ before) == 1
        assert frozenset(one.techniques) == _applied(one) - before


def test_a_kernel_takes_over_the_tune_values_of_the_fastest_of_its_parent_s_source() -> None:
    (first, *_) = _first()
    slow, fast = _choices(first.source)[0], _choices(first.source)[-1]
    assert slow["ROW"] != fast["ROW"]
    proposals = [first.model_copy(update={"tune": one}) for one in (slow, fast)]
    times = iter((5.0, 4.0))
    members = _joined([_start()], proposals, lambda _: next(times))
    steps = _proposer().propose(_population(members), 8)[:4]
    for one in steps:
        assert one.parents == (2,)
        best = max(
            sum(fast.get(name) == value for name, value in choice.items())
            for choice in _choices(one.source)
        )
        assert sum(fast.get(name) == value for name, value in one.tune.items()) == best


def test_the_same_population_gives_the_same_proposals() -> None:
    members = _joined([_start()], _first(), _cost)
    one, two = (_proposer().propose(_population(members), 9) for _ in "ab")
    assert one == two and len(one) == 9


def test_nothing_is_proposed_twice_in_ten_rounds() -> None:
    members = [_start()]
    for _ in range(10):
        members = _joined(members, _proposer().propose(_population(members), 12), _cost)
    programs = [(one.source, tuple(sorted(one.tune.items()))) for one in members]
    assert len(set(programs)) == len(programs) > 60
    written = [one.source_name for one in members if one.proposer == "generated"]
    assert len(set(written)) == len(written)


def test_what_each_technique_gains_is_found_from_a_few_rounds() -> None:
    members = [_start()]
    for _ in range(5):
        members = _joined(members, _proposer().propose(_population(members), 12), _cost)
    best = min(members, key=lambda one: one.latency_us or 0.0)
    made_of = set(best.source_name.removesuffix(".cu").split("-"))
    assert made_of >= {"generated", "cluster_sums", "dependent_launch", "fast_reciprocal"}
    assert made_of.isdisjoint({"streaming_access", "occupancy_bound"})


def test_techniques_are_those_of_the_knowledge_base_and_of_its_families() -> None:
    known = load_seed().techniques
    assert {name: known[name].family for name in TECHNIQUES} == {
        name: one.family for name, one in TECHNIQUES.items()
    }
