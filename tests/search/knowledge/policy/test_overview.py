"""What is shown of a base: the best expectation first, evidence by architecture."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.search.knowledge.edits import AddState, Deprecate
from kopt.search.knowledge.policy.overview import busiest_arch, report_base, report_state
from kopt.search.knowledge.records import State
from support.knowledge_cases import ON_SIM, SEED, STATE, TECHNIQUE, edit, projected, sample

LEARNED = projected([(n, sample(n, measured=0.4, interval=(0.39, 0.41))) for n in range(1, 9)])


def test_what_gained_most_is_expected_to_gain_most() -> None:
    report = report_state(LEARNED, STATE)
    assert report.entries[0].techniques == (TECHNIQUE,)
    assert report.entries[0].expected.tries == 8
    assert report.entries[0].expected.gain > 0.3


def test_states_with_most_tries_come_first() -> None:
    summary = report_base(LEARNED, Path("base.yaml")).states[0]
    assert (summary.state.id, summary.tried, summary.tries, summary.gained) == (STATE, 1, 8, 8)
    assert summary.best is not None and summary.best.techniques == (TECHNIQUE,)


def test_expectations_are_for_the_architecture_with_most_tries_or_the_one_asked_for() -> None:
    assert busiest_arch(SEED) == "sm_100a estimated"
    both = projected([(1, sample(1)), (2, sample(2)), (3, sample(3, **ON_SIM))])
    assert busiest_arch(both) == "sm_90a"
    asked = report_state(both, STATE, "sm_90a estimated").entries
    assert next(one.expected.tries for one in asked if one.techniques == (TECHNIQUE,)) == 1


def test_what_is_deprecated_comes_last_and_is_nobodys_best() -> None:
    base = projected([(1, sample(1)), (2, edit(Deprecate))])
    assert report_state(base, STATE).entries[-1].is_deprecated
    best = report_base(base, Path("base.yaml")).states[0].best
    assert best is not None and best.techniques != (TECHNIQUE,)


def test_a_discovered_state_shows_what_it_inherits() -> None:
    new = State(id="odd", bottleneck="memory_bound", inherits=STATE, is_discovered=True)
    base = projected([(1, sample(1)), (2, edit(AddState, state=new))])
    entries = {one.techniques: one for one in report_state(base, "odd").entries}
    assert entries[TECHNIQUE,].inherited_from == STATE
    assert entries[TECHNIQUE,].evidence == ()


def test_pairs_of_a_states_techniques_are_shown_with_it() -> None:
    base = projected([(1, sample(1, previous="warp_per_row"))])
    pairs = {(one.before, one.after): one for one in report_state(base, STATE).pairs}
    assert pairs["warp_per_row", TECHNIQUE].evidence[0].evidence.tries == 1


def test_an_unknown_state_is_answered_with_the_nearest() -> None:
    with pytest.raises(ToolError, match="no state dram_saturate: did you mean dram_saturated"):
        report_state(SEED, "dram_saturate")
