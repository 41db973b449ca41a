"""The sweep: what it proposes from which population."""

from math import prod

from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Member, Population
from kopt.search.rounds.sweep import SweepProposer
from support.populations import failed, member, passed
from support.scripted_runs import grid_choices

BIG = {
    "AXIS_A": (1, 2, 4, 8, 16),
    "AXIS_B": (1, 2, 4, 8, 16),
    "AXIS_C": (1, 2, 4, 8, 16),
    "AXIS_D": (1, 2, 4, 8),
}
BEST = {"AXIS_A": 8, "AXIS_B": 2, "AXIS_C": 16, "AXIS_D": 4}


def _population(members: list[Member], seed: int = 0) -> Population:
    ranked = sorted((m for m in members if m.passed), key=lambda m: m.latency_us or 0.0)
    return Population(round=len(members), seed=seed, members=tuple(members), beam=tuple(ranked[:2]))


def _evaluated(tune: dict[str, int]) -> Evaluation:
    """Return a latency that grows with each value's distance from the best, in octaves."""
    far = [max(tune[name], BEST[name]) / min(tune[name], BEST[name]) for name in BIG]
    return passed(prod(1.0 + 0.3 * (ratio - 1.0) for ratio in far))


def test_small_grid_is_proposed_whole_and_only_once() -> None:
    first = member(0, passed(6.0))
    proposals = SweepProposer(lambda _: grid_choices()).propose(_population([first]), 12)
    proposed = [tuple(proposal.tune.items()) for proposal in proposals]
    assert len(set(proposed)) == len(proposed) == len(grid_choices()) - 1
    assert tuple(first.tune.items()) not in proposed


def test_first_round_on_a_big_grid_changes_one_value_each() -> None:
    tune = grid_choices(BIG)[0]
    population = _population([member(0, _evaluated(tune), tune=tune)])
    proposals = SweepProposer(lambda _: grid_choices(BIG)).propose(population, 8)
    changed = [[n for n in BIG if p.tune[n] != tune[n]] for p in proposals]
    assert all(len(names) == 1 for names in changed)
    assert {names[0] for names in changed} == set(BIG)


def test_best_of_a_grid_of_500_is_found_within_60_evaluations() -> None:
    sweep = SweepProposer(lambda _: grid_choices(BIG))
    for seed in range(5):
        first = grid_choices(BIG)[0]
        members = [member(0, _evaluated(first), tune=first)]
        for _ in range(5):
            members += [
                member(len(members) + index, _evaluated(proposal.tune), tune=proposal.tune)
                for index, proposal in enumerate(sweep.propose(_population(members, seed), 12))
            ]
        assert len(members) <= 61
        assert BEST in [m.tune for m in members]


def test_same_population_and_seed_give_the_same_proposals() -> None:
    tune = grid_choices(BIG)[0]
    population = _population([member(0, _evaluated(tune), tune=tune)], seed=3)
    one, two = (SweepProposer(lambda _: grid_choices(BIG)).propose(population, 5) for _ in "ab")
    assert one == two


def test_nothing_is_left_to_propose_once_the_grid_is_tried() -> None:
    members = [member(i, passed(1.0), tune=tune) for i, tune in enumerate(grid_choices())]
    assert SweepProposer(lambda _: grid_choices()).propose(_population(members), 12) == ()


def test_source_without_tune_parameters_gives_no_proposals() -> None:
    members = [member(0, passed(1.0), tune={})]
    assert SweepProposer(lambda _: ({},)).propose(_population(members), 12) == ()


def test_start_that_fails_is_swept_all_the_same() -> None:
    population = _population([member(0, failed())])
    proposals = SweepProposer(lambda _: grid_choices()).propose(population, 12)
    assert len(proposals) == 8 and all(p.parents == (0,) for p in proposals)


def test_two_sources_in_the_beam_share_the_round() -> None:
    members = [member(0, passed(2.0)), member(1, passed(1.0), source="other", source_sha="b" * 64)]
    proposals = SweepProposer(lambda _: grid_choices()).propose(_population(members), 6)
    assert [p.source for p in proposals].count("other") == 3 and len(proposals) == 6


def test_parent_is_the_beam_member_with_the_nearest_values() -> None:
    members = [
        member(0, passed(2.0)),
        member(1, passed(1.0), tune={"BLOCK": 256, "ROWS": 4}),
    ]
    for proposal in SweepProposer(lambda _: grid_choices()).propose(_population(members), 12):
        if proposal.tune["BLOCK"] == 256:
            assert proposal.parents == (1,)
