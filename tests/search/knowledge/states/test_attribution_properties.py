"""Whatever a search left behind: no cheat gains, nothing counts twice, no order matters."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import isclose

import pytest

from kopt.kernels.status import Status
from kopt.search.knowledge.records import Sample
from kopt.search.knowledge.states.attribution import Teaching, ablations_wanted, make_samples
from kopt.search.records.evaluation import FAMILY_CONTRADICTED
from kopt.search.records.members import Member
from kopt.search.selection.ranking import refuted_programs
from support.populations import failed, passed, timed
from support.random_populations import in_another_order, random_population
from support.taught_runs import CATALOGUE, ON_GPU, ON_SIM, rows_of, variant

pytestmark = pytest.mark.slow  # hundreds of random cases

SEEDS = range(60)


def random_run(seed: int) -> tuple[list[Member], Teaching]:
    """Return candidates with techniques, switches, cheats, sweeps and variants; and the run."""
    draw = random.Random(seed)
    on_gpu = draw.random() < 0.5
    members = [_with_techniques(draw, one) for one in random_population(seed, on_gpu)]
    for of in draw.sample(members, min(len(members), 6)):
        for _ in range(draw.randint(1, 3)):
            tune = {name: draw.choice((0, 0, value)) for name, value in of.tune.items()}
            time_us = draw.uniform(1.0, 4.0)
            evaluation = timed(time_us, 4.0 / time_us) if on_gpu else passed(time_us)
            members.append(variant(len(members), of, evaluation, **tune))
    return members, replace(ON_GPU if on_gpu else ON_SIM, is_final=draw.random() < 0.5)


def _with_techniques(draw: random.Random, one: Member) -> Member:
    """Return a candidate with a source of its own; all of one branch have the same claims."""
    claims = random.Random(f"{one.branch}").sample(sorted(CATALOGUE), draw.randint(1, 3))
    switched = [name for name in claims if draw.random() < 0.5]
    tune = {f"WITH_{name.upper()}": 1 for name in switched} | {"BLOCK": 64}
    evaluation = failed(Status.REWARD_HACK) if draw.random() < 0.05 else one.quick
    return replace(
        one,
        source_sha=f"source {one.label}",
        tune=tune,
        techniques=() if one.branch is None else tuple(claims),
        quick=evaluation,
    )


def samples_of(members: Sequence[Member], context: Teaching) -> tuple[Sample, ...]:
    return make_samples(members, rows_of(members), context)


def after_of(sample: Sample, members: Sequence[Member]) -> Member:
    return members[int(sample.id.split("/")[1])]


def cheats(member: Member, members: Sequence[Member]) -> bool:
    equivalence = member.quick.equivalence if member.quick else None
    return (
        not member.passed
        or member.is_refuted
        or member.cost is None
        or equivalence in refuted_programs(members)
        or (member.quick is not None and member.quick.metric(FAMILY_CONTRADICTED) is not None)
    )


def test_random_runs_teach_every_outcome_and_every_kind() -> None:
    outcomes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seed in SEEDS:
        for sample in samples_of(*random_run(seed)):
            outcomes[sample.outcome] += 1
            kinds[sample.id.split("/")[2][:4] if sample.id.count("/") > 1 else "whole"] += 1
    assert min(outcomes[name] for name in ("gained", "lost", "within_noise", "failed")) > 20
    assert min(kinds[name] for name in ("whole", "from", "WITH", "refu")) > 5


@pytest.mark.parametrize("seed", SEEDS)
def test_cheat_never_teaches_anything_but_a_failure(seed: int) -> None:
    members, context = random_run(seed)
    for sample in samples_of(members, context):
        is_cheat = cheats(after_of(sample, members), members)
        if sample.techniques == ("tune_constants",):
            assert not is_cheat or sample.outcome == "within_noise"
        else:
            assert is_cheat == (sample.outcome == "failed")
        assert (sample.measured is None) == (sample.outcome == "failed")


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_taught_twice(seed: int) -> None:
    members, context = random_run(seed)
    samples = samples_of(members, context)
    assert max(Counter(one.id for one in samples).values(), default=1) == 1
    applied = [one for one in samples if one.techniques != ("tune_constants",)]
    steps = Counter((one.before, one.after, one.techniques) for one in applied)
    assert max(steps.values(), default=1) == 1
    of_candidate: dict[str, list[str]] = defaultdict(list)
    for one in applied:
        of_candidate[one.id.split("/")[1]] += one.techniques
    assert all(len(names) == len(set(names)) for names in of_candidate.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_gain_has_the_sign_and_the_certainty_that_it_claims(seed: int) -> None:
    members, context = random_run(seed)
    for sample in samples_of(members, context):
        if sample.measured is None:
            continue
        low, high = sample.interval or (sample.measured, sample.measured)
        assert low <= sample.measured <= high
        if sample.outcome == "gained":
            assert low > 0.0
        if sample.outcome == "lost":
            assert high < 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_steps_of_a_mixture_add_up_to_the_whole(seed: int) -> None:
    members, context = random_run(seed)
    parts: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples_of(members, context):
        if "/WITH_" in sample.id:
            parts[sample.id.split("/")[1]].append(sample)
    bare = [replace(one, tune={}) for one in members if one.branch or one.seq == 0]
    whole = {one.after: one for one in samples_of(bare, replace(context, is_final=True))}
    for steps in parts.values():
        total = whole[steps[0].after]
        if "/from" not in total.id:
            assert total.measured is not None
            assert isclose(sum(one.measured or 0.0 for one in steps), total.measured, abs_tol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_order_in_which_branches_ended_does_not_matter(seed: int) -> None:
    drawn, context = random_run(seed)
    members = [one for one in drawn if one.branch or one.seq == 0]
    others = in_another_order(members, seed)
    kept = [
        sorted(
            (one.before, one.after, one.techniques, str(one.measured), one.outcome) for one in of
        )
        for of in (samples_of(members, context), samples_of(others, context))
    ]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_taught_after_a_round_is_taught_after_all(seed: int) -> None:
    members, context = random_run(seed)
    context = replace(context, is_final=True)
    for number in range(1 + max(one.round for one in members)):
        early = [one for one in members if one.round <= number and not one.is_refuted]
        whole = [one for one in members if not one.is_refuted]
        if refuted_programs(members) or [one.seq for one in whole] != list(range(len(whole))):
            return
        later = {one.id: one for one in samples_of(whole, context)}
        for sample in samples_of(early, context):
            assert later.get(sample.id) in (sample, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_wanted_variants_differ_from_their_candidate_in_switches_alone(seed: int) -> None:
    members, context = random_run(seed)
    for wanted in ablations_wanted(members, rows_of(members), context):
        tune = members[wanted.seq].tune
        changed = {name for name, value in wanted.tune.items() if tune[name] != value}
        assert changed and all(name.startswith("WITH_") for name in changed)
        assert not [one for one in members if one.tune == wanted.tune and one.seq == wanted.seq]
