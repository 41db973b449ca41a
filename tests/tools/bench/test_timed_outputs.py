"""Timed calls whose outputs are not the checked ones."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels import wide_work
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.set_contents import DRAWS
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.bench.timed_case import TimedCase
from kopt.tools.devices.device import Arrays, ExecutionRequest
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import QUIET, SETS, Script, ScriptedTimer
from support.synthetic_check import case_of, right_outputs


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def _bench(request: BenchRequest, settings: Settings, timer: ScriptedTimer) -> BenchResult:
    return bench_candidate(request, timer, settings)


def test_right_outputs_are_counted_as_identical(request_: BenchRequest, settings: Settings) -> None:
    result = _bench(request_, settings, ScriptedTimer())
    assert result.timed_outputs is not None
    assert result.timed_outputs.model_dump() == {
        "calls": 2 * SETS,
        "identical": 2 * SETS,
        "within_gates": 0,
    }


def test_outputs_that_differ_within_the_gates_pass(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(place: int, outputs: Arrays) -> None:
        if place < 3:
            outputs["y_bf16"].view(np.uint16)[0, 0] += 1  # one ulp of bf16

    result = _bench(request_, settings, ScriptedTimer(Script(spoil_timed=spoil)))
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.FASTER)
    assert result.timed_outputs is not None
    assert result.timed_outputs.identical == 2 * (SETS - 3)
    assert result.timed_outputs.within_gates == 2 * 3


@pytest.mark.parametrize("block_bytes", [3, 8, wide_work.BLOCK_BYTES])
@pytest.mark.parametrize("place", [0, SETS - 1])
def test_one_wrong_element_of_one_call_is_found(
    request_: BenchRequest,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    place: int,
    block_bytes: int,
) -> None:
    monkeypatch.setattr(wide_work, "BLOCK_BYTES", block_bytes)

    def spoil(at: int, outputs: Arrays) -> None:
        if at == place:
            outputs["kept"].view(np.uint16)[5, 7] ^= 1

    result = _bench(request_, settings, ScriptedTimer(Script(spoil_timed=spoil)))
    assert (result.status, result.verdict) == (Status.INCORRECT, None)
    assert (result.comparisons, result.latency) == ((), None)


def _without_rows(request: BenchRequest) -> BenchRequest:
    problem = request.case.problem.model_copy(update={"row_axis": None})
    return replace(request, case=replace(request.case, problem=problem))


def test_without_rows_sets_hold_four_draws_each_with_its_own_results(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()
    result = _bench(_without_rows(request_), settings, timer)
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.FASTER)
    assert result.timed_outputs is not None
    assert result.timed_outputs.identical == 2 * SETS
    draws = timer.sessions[-1].draws
    assert len(draws) == DRAWS
    assert len({one["x"].tobytes() for one in draws}) == DRAWS


def test_without_rows_every_side_is_verified_on_every_draw(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()
    _bench(_without_rows(request_), settings, timer)
    timed = {one["x"].tobytes() for one in timer.sessions[-1].draws}
    seen = [one.inputs["x"].tobytes() for one in timer.executions]
    assert all(seen.count(one) >= 4 for one in timed)  # two poisons of two sides


@pytest.mark.parametrize("place", [0, SETS - 1])
def test_without_rows_one_wrong_element_of_one_call_is_found(
    request_: BenchRequest, settings: Settings, place: int
) -> None:
    def spoil(at: int, outputs: Arrays) -> None:
        if at == place:
            outputs["kept"].view(np.uint16)[5, 7] ^= 1

    script = Script(spoil_timed=spoil)
    assert _bench(_without_rows(request_), settings, ScriptedTimer(script)).status is (
        Status.INCORRECT
    )


def test_without_rows_the_results_of_another_draw_are_a_hack(
    request_: BenchRequest, settings: Settings
) -> None:
    first: dict[str, Arrays] = {}

    def spoil(place: int, outputs: Arrays) -> None:
        kept = first.setdefault("outputs", {name: array.copy() for name, array in outputs.items()})
        for name, array in outputs.items():
            array[...] = kept[name]

    script = Script(spoil_timed=spoil)
    result = _bench(_without_rows(request_), settings, ScriptedTimer(script))
    assert result.status is Status.REWARD_HACK


def test_written_padding_in_a_timed_call_is_found(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(place: int, outputs: Arrays) -> None:
        bits = outputs["total"].view(np.uint32)
        bits[(bits == 0xFFFFFFFF) | (bits == 0x55555555)] = 0

    result = _bench(request_, settings, ScriptedTimer(Script(spoil_timed=spoil)))
    assert result.status is Status.INCORRECT


@pytest.mark.parametrize("block_bytes", [24, wide_work.BLOCK_BYTES])
def test_the_most_different_of_many_differing_calls_is_judged(
    request_: BenchRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(wide_work, "BLOCK_BYTES", block_bytes)

    def spoil(place: int, outputs: Arrays) -> None:
        outputs["y_bf16"].view(np.uint16)[0, 0] += 1
        if place == 63:
            outputs["y_bf16"][3] = 0

    script = Script(spoil_timed=spoil, sets=64)
    result = _bench(request_, settings, ScriptedTimer(script))
    assert result.status is Status.INCORRECT


def test_of_many_differing_calls_a_sample_is_judged(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(place: int, outputs: Arrays) -> None:
        outputs["y_bf16"].view(np.uint16)[0, 0] += 1

    result = _bench(request_, settings, ScriptedTimer(Script(spoil_timed=spoil, sets=64)))
    counts = result.timed_outputs
    assert counts is not None
    assert (counts.calls, counts.identical, counts.within_gates) == (16 + 64, 0, 16 + 16)


def test_calls_that_write_nothing_are_a_reward_hack(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()

    def spoil(place: int, outputs: Arrays) -> None:
        session = timer.sessions[-1]
        data = case_of(session.problem, session.inputs)
        rows = data.inputs["x"].shape[0]
        order = np.random.default_rng(session.layout_seed).permutation(SETS)
        kept = np.roll(data.inputs["kept"], int(order[place]) % rows, axis=0)
        for name, array in outputs.items():
            array.view(np.uint8)[...] = session.poison
            if name == "kept":
                array[...] = kept

    timer.script.spoil_timed = spoil
    result = _bench(request_, settings, timer)
    assert (result.status, result.verdict) == (Status.REWARD_HACK, None)


def test_calls_that_replay_an_earlier_result_are_a_reward_hack(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()

    def spoil(place: int, outputs: Arrays) -> None:
        session = timer.sessions[-1]
        data = case_of(session.problem, session.inputs)
        memoised = right_outputs(session.problem, data, session.poison)
        for name, array in outputs.items():
            array[...] = memoised[name]

    timer.script.spoil_timed = spoil
    result = _bench(request_, settings, timer)
    assert result.status is Status.REWARD_HACK
    assert result.diagnostics[-1].message == "results of timed calls differ from the checked ones"


def test_what_keeps_its_results_for_later_calls_is_found_where_contents_repeat(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        if request.finds_leftovers:
            outputs["y_bf16"][:] = 0

    result = _bench(request_, settings, ScriptedTimer(Script(spoil=spoil, sets=64)))
    assert (result.status, result.verdict) == (Status.INCORRECT, None)
    assert result.diagnostics[-1].message.startswith("right before the timing, and wrong in a call")
    every_set_its_own = ScriptedTimer(Script(spoil=spoil, sets=8))
    assert _bench(request_, settings, every_set_its_own).status is Status.PASSED


def test_a_later_call_has_other_inputs_than_the_timed_ones(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(sets=64))
    assert _bench(request_, settings, timer).status is Status.PASSED
    (later,) = (one for one in timer.executions if one.finds_leftovers)
    assert later.inputs["x"].tobytes() != timer.sessions[-1].inputs["x"].tobytes()
    assert timer.replayed[-1] == (0,)


def test_without_rows_a_later_call_has_other_inputs_than_every_draw(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()
    assert _bench(_without_rows(request_), settings, timer).status is Status.PASSED
    (later,) = (one for one in timer.executions if one.finds_leftovers)
    timed = {one["x"].tobytes() for one in timer.sessions[-1].draws}
    seen = [one.inputs["x"].tobytes() for one in timer.executions]
    assert later.inputs["x"].tobytes() not in timed
    assert seen.count(later.inputs["x"].tobytes()) == 1


def test_inputs_that_nobody_had_are_given_out_once(
    request_: BenchRequest, settings: Settings
) -> None:
    asked = _without_rows(request_).case
    case = TimedCase(asked.problem, asked.workload, 3, 4, ScriptedTimer(), settings)
    drawn = {one.inputs["x"].tobytes() for one in case.draws}
    unseen = {case.unseen().inputs["x"].tobytes() for _ in range(3)}
    assert len(unseen - drawn) == 3


def test_a_call_that_is_wrong_only_late_is_found_by_the_last_look(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(noise=QUIET))

    def spoil(place: int, outputs: Arrays) -> None:
        if len(timer.collected_after) == 2:
            outputs["y_fp8"][0] = 0

    timer.script.spoil_timed = spoil
    assert _bench(request_, settings, timer).status is Status.INCORRECT
