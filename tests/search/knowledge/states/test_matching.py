"""Programs find the state that says most about them; where none is near, one is named."""

import random
from typing import get_args

import pytest

from kopt.kernels.profile_result import BottleneckName, SuspectName
from kopt.kernels.status import Provenance
from kopt.search.knowledge.records import ProfileSignature, State
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.matching import (
    MIN_CONFIDENCE,
    SHOWN_SUSPECTS,
    likeness,
    match_state,
)
from kopt.search.knowledge.states.signature import TRAITS

STATES = load_seed().states
ODD = ProfileSignature(
    bottleneck="memory_bound",
    suspects=("barriers", "spills", "few_blocks", "low_occupancy"),
    traits=("atomics", "spills"),
    provenance=Provenance.ESTIMATED,
)
"""No documented state has these together."""


def signature(
    bottleneck: str, *suspects: SuspectName, traits: tuple[str, ...] = ()
) -> ProfileSignature:
    return ProfileSignature.model_validate(
        {
            "bottleneck": bottleneck,
            "suspects": suspects,
            "traits": traits,
            "provenance": Provenance.ESTIMATED,
        }
    )


def drawn_signature(seed: int) -> ProfileSignature:
    draw = random.Random(seed)
    suspects = draw.sample(get_args(SuspectName), draw.randint(0, 5))
    traits = sorted(draw.sample(sorted(TRAITS), draw.randint(0, 6)))
    return signature(draw.choice(get_args(BottleneckName)), *suspects, traits=tuple(traits))


@pytest.mark.parametrize("state", STATES.values(), ids=lambda state: state.id)
def test_program_that_is_just_what_a_state_describes_is_in_it(state: State) -> None:
    exact = signature(state.bottleneck, *state.suspects, traits=state.traits)
    match = match_state(exact, STATES)
    assert (match.state, match.is_new) == (state, False)
    assert match.confidence == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("suspects", "state"),
    [
        (("memory_latency", "narrow_access", "repeated_reads"), "narrow_round_trips"),
        (("memory_latency", "few_blocks", "narrow_access"), "idle_multiprocessors"),
        (("memory_latency", "barriers", "narrow_access"), "barrier_rounds"),
    ],
)
def test_suspect_that_stands_first_decides(suspects: tuple[SuspectName, ...], state: str) -> None:
    traits = ("few_blocks", "many_barriers", "reads_twice", "scalar_access")
    assert (
        match_state(signature("latency_bound", *suspects, traits=traits), STATES).state.id == state
    )


def test_another_bottleneck_is_no_match_whatever_else_agrees() -> None:
    state = STATES["narrow_round_trips"]
    other = signature("compute_bound", *state.suspects, traits=state.traits)
    assert likeness(other, state) == pytest.approx(0.55)
    assert match_state(other, {state.id: state}).is_new


def test_related_bottleneck_counts_half() -> None:
    state = STATES["register_pressure"]
    near = signature("latency_bound", *state.suspects, traits=state.traits)
    assert likeness(near, state) == pytest.approx(0.775)


def test_states_equally_near_are_rivals_and_the_rule_takes_the_documented_one() -> None:
    known = STATES["barrier_rounds"]
    twin = known.model_copy(update={"id": "a_twin", "is_discovered": True})
    exact = signature(known.bottleneck, *known.suspects, traits=known.traits)
    match = match_state(exact, {twin.id: twin, known.id: known})
    assert (match.state, match.rivals) == (known, (twin,))


def test_state_that_nothing_describes_is_named_after_what_was_seen() -> None:
    match = match_state(ODD, STATES)
    assert match.is_new
    assert match.confidence < MIN_CONFIDENCE
    assert match.state.id == "discovered_memory_bound_barriers_spills_few_blocks"
    assert match.state.suspects == ODD.suspects[:SHOWN_SUSPECTS]
    assert match.state.is_discovered


def test_new_state_inherits_from_the_nearest_of_its_bottleneck() -> None:
    parent = match_state(ODD, STATES).state.inherits
    assert parent is not None
    assert STATES[parent].bottleneck in ("memory_bound", "l2_bound")


def test_new_state_is_known_when_it_is_met_again() -> None:
    new = match_state(ODD, STATES).state
    again = match_state(ODD, {**STATES, new.id: new})
    assert (again.state, again.is_new) == (new, False)


@pytest.mark.parametrize("seed", range(200))
def test_every_program_has_one_state_that_can_be_kept(seed: int) -> None:
    drawn = drawn_signature(seed)
    match = match_state(drawn, STATES)
    assert 0.0 <= match.confidence <= 1.0 + 1e-9
    assert match.is_new == (match.confidence < MIN_CONFIDENCE)
    assert match.is_new == (match.state.id not in STATES)
    kept = {**STATES, match.state.id: match.state}
    assert match_state(drawn, kept).state.id == match.state.id


def test_states_found_in_any_order_never_share_a_name() -> None:
    known = dict(STATES)
    for seed in range(400):
        match = match_state(drawn_signature(seed), known)
        assert match.is_new == (match.state.id not in known)
        known[match.state.id] = match.state


def test_order_of_the_states_does_not_matter() -> None:
    backwards = {name: STATES[name] for name in reversed(list(STATES))}
    for seed in range(100):
        drawn = drawn_signature(seed)
        assert match_state(drawn, STATES) == match_state(drawn, backwards)
