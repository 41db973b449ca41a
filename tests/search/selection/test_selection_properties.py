"""What holds for every population, tried on many random ones."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from kopt.config.search_settings import SearchSettings
from kopt.search.agents.plans import Hypothesis
from kopt.search.agents.slots import PopulationView, Slot, plan_slots
from kopt.search.records.members import Member, Population
from kopt.search.selection.beam import eligible, find_ties, select_beam
from kopt.search.selection.crossing import combine_parents
from kopt.search.selection.family_standing import retired_families
from kopt.search.selection.ranking import rank, speed_of
from support.populations import choices, timed
from support.random_populations import in_another_order, random_population

pytestmark = pytest.mark.slow  # hundreds of random populations

RESERVE = tuple(
    Hypothesis(
        slot="",
        family=family,
        name=family,
        hypothesis="h",
        mechanism="m",
        expected_gain=0.1,
        risk="r",
        evidence="e",
        parents=(0,),
    )
    for family in ("layout", "algebra", "tensor_cores")
)


def for_seeds(count: int) -> Callable[[Callable[[int], None]], Callable[[], None]]:
    """Make a test, one item, of a check on so many seeds; a failure shows the seed."""

    def decorate(check: Callable[[int], None]) -> Callable[[], None]:
        def test() -> None:
            for seed in range(count):
                check(seed)

        return test

    return decorate


def _settings(seed: int) -> SearchSettings:
    mode = "fastest" if seed % 5 == 0 else "family_diverse"
    return choices(1 + seed % 6, diversity_mode=mode, tree_branching_factor=seed % 4)


def _unrefuted(members: list[Member]) -> list[Member]:
    return [one for one in members if not one.is_refuted]


def _slots(members: list[Member], settings: SearchSettings) -> tuple[Slot, ...]:
    population = Population(
        round=99, seed=0, members=tuple(members), beam=select_beam(members, settings)
    )
    past = frozenset({"retry-r1b0", "cross-r1b0-r1b1"})
    return plan_slots(PopulationView(population, False, past, RESERVE), settings)


@for_seeds(120)
def test_beam_has_at_most_its_width_of_different_proven_programs(seed: int) -> None:
    members, settings = random_population(seed), _settings(seed)
    beam = select_beam(members, settings)
    assert len(beam) <= settings.beam.width
    assert all(one.passed and not one.is_refuted for one in beam)
    programs = [one.quick.equivalence or one.seq for one in beam if one.quick]
    assert len(set(programs)) == len(beam)


@for_seeds(120)
def test_beam_never_loses_the_best_proven_candidate(seed: int) -> None:
    members, settings = random_population(seed), _settings(seed)
    beam = select_beam(members, settings)
    proven = [speed for one in rank(_unrefuted(members)) if (speed := speed_of(one))]
    if not proven:
        assert not any(speed_of(one) for one in beam)
        return
    best, leader = max(proven, key=lambda speed: speed.low), speed_of(beam[0])
    assert leader is not None
    assert not best.is_above(leader)
    assert leader.value >= best.low >= leader.low >= best.low - best.width


@for_seeds(120)
def test_no_family_takes_more_than_its_share_of_a_diverse_beam(seed: int) -> None:
    members, settings = random_population(seed), choices(1 + seed % 6)
    beam = select_beam(members, settings)
    if len({one.family for one in eligible(members, settings)}) > 1:
        assert max(Counter(one.family for one in beam).values()) <= settings.family_share


@for_seeds(120)
def test_retirement_spares_the_leader_s_family_and_keeps_others_out(seed: int) -> None:
    members, settings = random_population(seed), _settings(seed)
    retired = retired_families(members, settings)
    beam = select_beam(members, settings)
    assert not {one.family for one in beam} & retired
    leader = next(iter(rank(_unrefuted(members))), None)
    assert (leader is None) == (not beam)
    assert leader is None or beam[0] is leader


@for_seeds(120)
def test_slots_fit_the_round_and_start_from_what_may_have_children(seed: int) -> None:
    members, settings = random_population(seed), _settings(seed)
    slots = _slots(members, settings)
    beam = {one.seq for one in select_beam(members, settings)}
    retired = retired_families(members, settings)
    assert len(slots) <= settings.round_size
    assert len({slot.id for slot in slots}) == len(slots)
    assert not {slot.id for slot in slots} & {"retry-r1b0", "cross-r1b0-r1b1"}
    for slot in slots:
        parents = [members[seq] for seq in slot.parents]
        if slot.kind in ("refine", "expand"):
            assert slot.parents[0] in beam
        elif slot.kind == "cross":
            assert parents[0].family != parents[1].family
            assert all(one.passed and not one.is_refuted for one in parents)
        elif slot.kind == "retry":
            assert not parents[0].passed and parents[0].family not in retired


@for_seeds(40)
def test_nothing_depends_on_which_branch_was_done_first(seed: int) -> None:
    members, settings = random_population(seed), _settings(seed)
    moved = in_another_order(members, seed)
    views = [
        (
            [one.label for one in select_beam(population, settings)],
            [slot.id for slot in _slots(population, settings)],
            [population[seq].label for seq in find_ties(population, settings)],
            [one.label for one in combine_parents(population, settings)],
            retired_families(population, settings),
        )
        for population in (members, moved)
    ]
    assert views[0] == views[1]


@for_seeds(120)
def test_the_best_estimate_never_gets_worse_as_rounds_pass(seed: int) -> None:
    members, settings = random_population(seed, measured=False), _settings(seed)
    members = [replace(one, full=None) for one in members]
    best = 0.0
    for index in range(members[-1].round + 1):
        beam = select_beam([one for one in members if one.round <= index], settings)
        speed = speed_of(beam[0]) if beam else None
        assert speed is None or speed.value >= best
        best = best if speed is None else speed.value


@for_seeds(120)
def test_measuring_ties_comes_to_an_end_with_each_measured_once(seed: int) -> None:
    members, settings = random_population(seed, measured=True), _settings(seed)
    asked: list[int] = []
    while ties := find_ties(members, settings):
        for seq in ties:
            speed = speed_of(members[seq])
            assert speed is not None and members[seq].tie is None
            again = timed(1.0, speed.value, half_width=speed.width / 4)
            members[seq] = replace(members[seq], tie=again)
        asked += ties
    assert len(set(asked)) == len(asked)
