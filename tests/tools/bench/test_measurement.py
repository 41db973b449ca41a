"""When outputs are looked at, and how long is measured."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kopt.kernels.problem import Problem
from kopt.tools.bench.measurement import (
    OTHER_PAIRS,
    SAMPLED_SETS,
    Measurement,
    SessionPlan,
    measure,
)
from kopt.tools.bench.pair_order import Pairing
from kopt.tools.check.case_data import CaseKey, make_case_data
from kopt.tools.devices.timer import (
    CandidateSide,
    EmptySide,
    Replays,
    SetOutputs,
    Telemetry,
    TimingFailure,
    TimingRequest,
    replay_each,
)
from support.scripted_timer import QUIET, Noise, Script, ScriptedSession, ScriptedTimer
from support.synthetic_check import plans_for

MAIN, NOISE_PAIR = Pairing(0, 1), Pairing(2, 1)
PLAN = SessionPlan(
    main=MAIN, empty=3, noise=NOISE_PAIR, min_pairs=100, max_pairs=1600, threshold=0.003, seed=0
)


def _session(problem: Problem, script: Script) -> tuple[ScriptedTimer, ScriptedSession]:
    timer = ScriptedTimer(script)
    workload = problem.workloads[0]
    plan = plans_for(problem)[workload.name]
    candidate, reference = (
        CandidateSide(plan=plan, cubin_path=name) for name in ("/mine.cu", "/reference.cu")
    )
    data = make_case_data(CaseKey(problem, workload, 1, "normal"))
    request = TimingRequest(
        problem=problem,
        workload=workload,
        sides=(candidate, reference, reference, EmptySide(plan=plan)),
        inputs=data.inputs,
        poison=0xFF,
        layout_seed=0,
    )
    return timer, ScriptedSession(timer, request)


def _measured(found: Measurement | TimingFailure) -> Measurement:
    assert isinstance(found, Measurement)
    return found


def _accept(outputs: SetOutputs) -> bool:
    return bool(outputs.outputs)


class _FarSession:
    """A session of another process: several sequences are one call."""

    def __init__(self, session: ScriptedSession) -> None:
        self._session = session
        self.calls: list[int] = []
        self.facts = session.facts
        self.collect, self.warm_us = session.collect, session.warm_us

    def replay(self, sequence: Sequence[int]) -> Replays | TimingFailure:
        self.calls.append(1)
        return self._session.replay(sequence)

    def replay_each(
        self, sequences: Sequence[Sequence[int]]
    ) -> tuple[Replays, ...] | TimingFailure:
        self.calls.append(len(sequences))
        return replay_each(self._session, sequences)


@pytest.mark.parametrize("seed", range(5))
def test_a_far_session_measures_the_same_in_few_calls(problem: Problem, seed: int) -> None:
    plan = replace(PLAN, seed=seed)
    _, near = _session(problem, Script(noise=QUIET))
    far = _FarSession(_session(problem, Script(noise=QUIET))[1])
    assert measure(far, plan, _accept) == measure(near, plan, _accept)
    assert sum(far.calls) == 26  # 25 blocks, and the one that is looked at
    assert len(far.calls) <= 7


@pytest.mark.parametrize("seed", range(5))
def test_what_is_looked_at_on_the_way_ends_a_call_with_blocks_that_count(
    problem: Problem, seed: int
) -> None:
    far = _FarSession(_session(problem, Script(noise=QUIET))[1])
    sequences: list[int] = []

    def inspect(outputs: SetOutputs) -> bool:
        sequences.append(far.calls[-1])
        return bool(outputs.outputs)

    measure(far, replace(PLAN, seed=seed), inspect)
    assert sequences[0] > 1


@pytest.mark.parametrize("seed", range(5))
def test_outputs_are_taken_once_on_the_way_and_once_at_the_end(problem: Problem, seed: int) -> None:
    timer, session = _session(problem, Script(noise=QUIET))
    measure(session, replace(PLAN, seed=seed), _accept)
    first, last = timer.collected_after
    assert 1 <= first < last == len(timer.replayed)


def test_nobody_can_tell_which_replay_is_looked_at(problem: Problem) -> None:
    points: set[int] = set()
    for seed in range(40):
        timer, session = _session(problem, Script(noise=QUIET))
        measure(session, replace(PLAN, seed=seed), _accept)
        points.add(timer.collected_after[0])
    assert len(points) > 15


def test_the_replay_that_is_looked_at_may_be_any_of_a_block(problem: Problem) -> None:
    lengths: set[int] = set()
    counts: set[int] = set()
    for seed in range(40):
        timer, session = _session(problem, Script(noise=QUIET))
        measure(session, replace(PLAN, seed=seed), _accept)
        block = timer.replayed[timer.collected_after[0] - 1]
        lengths.add(len(block))
        counts.add(block.count(MAIN.candidate))
    assert counts == {1, 2, 3, 4}  # a block has four of the candidate's
    assert len(lengths) > 8


def test_the_block_that_is_broken_off_for_a_look_does_not_count(problem: Problem) -> None:
    timer, session = _session(problem, Script(noise=QUIET))
    found = _measured(measure(session, PLAN, _accept))
    assert found.pairs(MAIN) == 100
    assert len(timer.replayed) == found.blocks + 1


def test_on_the_way_a_sample_of_sets_is_looked_at_and_all_at_the_end(problem: Problem) -> None:
    samples: set[tuple[int, ...]] = set()
    for seed in range(20):
        timer, session = _session(problem, Script(noise=QUIET, sets=64))
        measure(session, replace(PLAN, seed=seed), _accept)
        sample, everything = timer.collected_places
        assert len(set(sample)) == SAMPLED_SETS
        assert everything == tuple(range(64))
        samples.add(sample)
    assert len(samples) == 20


def test_the_outputs_are_those_of_a_timed_replay_of_the_candidate(problem: Problem) -> None:
    timer, session = _session(problem, Script())
    measure(session, PLAN, _accept)
    ends = [timer.replayed[after - 1][-1] for after in timer.collected_after]
    assert ends == [MAIN.candidate] * len(ends)


def test_refused_outputs_end_the_measurement(problem: Problem) -> None:
    timer, session = _session(problem, Script(noise=QUIET))
    measure(session, PLAN, lambda outputs: False)
    assert timer.collected_after == [len(timer.replayed)]


@pytest.mark.parametrize("seed", range(5))
def test_a_disturbed_session_still_ends_with_the_candidates_outputs(
    problem: Problem, seed: int
) -> None:
    hot = Telemetry(throttle=("hw_slowdown",))
    timer, session = _session(problem, Script(telemetry=lambda block: hot))
    found = _measured(measure(session, replace(PLAN, seed=seed), _accept))
    assert found.pairs(MAIN) == 0
    assert timer.replayed[timer.collected_after[-1] - 1][-1] == MAIN.candidate


def test_the_most_pairs_are_never_passed(problem: Problem) -> None:
    _, session = _session(problem, Script(noise=Noise(white=0.1)))
    found = _measured(measure(session, replace(PLAN, max_pairs=300), _accept))
    assert found.pairs(MAIN) == 300


def test_a_second_comparison_goes_on_only_while_it_is_open(problem: Problem) -> None:
    _, session = _session(
        problem, Script(noise=Noise(white=0.002), candidate_us=5.012, reference_us=5.0)
    )
    far_apart = (Pairing(3, 1),)  # an empty kernel
    plan = replace(PLAN, noise=None, others=far_apart, max_pairs=400)
    found = _measured(measure(session, plan, _accept))
    assert (found.pairs(MAIN), found.pairs(Pairing(3, 1))) == (400, OTHER_PAIRS)


def test_a_second_comparison_that_is_close_is_not_ended_early(problem: Problem) -> None:
    _, session = _session(problem, Script(noise=QUIET))
    close = (Pairing(2, 1),)  # two captures of one baseline
    found = _measured(measure(session, replace(PLAN, noise=None, others=close), _accept))
    assert found.pairs(Pairing(2, 1)) == found.pairs(MAIN) >= 100


def test_a_wide_floor_is_measured_on_but_not_for_ever(problem: Problem) -> None:
    _, session = _session(
        problem, Script(noise=Noise(white=0.05), candidate_us=5.0, reference_us=5.0)
    )
    found = _measured(measure(session, PLAN, _accept))
    assert found.pairs(NOISE_PAIR) == 400


def test_times_of_disturbed_blocks_count_nowhere(problem: Problem) -> None:
    def warm(block: int) -> Telemetry:
        return Telemetry(sm_mhz=1780 if block == 1 else 1980)

    _, session = _session(problem, Script(noise=QUIET, telemetry=warm))
    found = _measured(measure(session, PLAN, _accept))
    assert (found.disturbed, found.blocks) == (1, 26)
    assert found.dropped == {MAIN: 4, NOISE_PAIR: 4}
    assert len(found.us_per_call[3]) == 25
