"""Timing sessions on a real GPU: the same way as `kopt bench --device cuda:0` takes.

Times are compared with each other or held against wide ranges, never against recorded values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.row_rotation import rotate_outputs
from kopt.kernels.status import Status
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.devices.timer import (
    EmptySide,
    Replays,
    SetOutputs,
    TimingFailure,
    TimingSession,
)
from kopt.tools.gpu.device import CudaDevice
from support.gpu_memory import own_gpu_bytes
from support.gpu_programs import POISON, Gpu

pytestmark = pytest.mark.gpu

IN_PLACE = "fused_add_rmsnorm_b8xh4096"
LARGE = "merge_state_n2048xh64xd128"
KERNELS = [
    IN_PLACE,
    LARGE,
    "add_rmsnorm_fp4quant_sf128x4_b128xh2048",
    "fused_add_rmsnorm_fp8_block_quant_b8xh7168",
    "rope_quantize_fp8_n128xh128",
    "silu_mul_fp4quant_b8xm256xk7168",
]


@pytest.fixture(scope="module")
def gpu(settings: Settings, compile_problem: Problem) -> Iterator[Gpu]:
    """The first GPU."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        yield Gpu(device, settings, compile_problem)


def _open(session: TimingSession | TimingFailure) -> TimingSession:
    assert not isinstance(session, TimingFailure), session
    return session


def _replay(session: TimingSession, sequence: Sequence[int]) -> Replays:
    replays = session.replay(sequence)
    assert isinstance(replays, Replays), replays
    return replays


def _collect(session: TimingSession) -> SetOutputs:
    outputs = session.collect()
    assert isinstance(outputs, SetOutputs), outputs
    return outputs


def _bytes(arrays: Arrays) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("kernel", KERNELS)
def test_timed_calls_compute_what_one_checked_call_does_with_rows_rotated(
    kernel: str, gpu: Gpu
) -> None:
    case = gpu.case(kernel)
    problem, axes = case.program.problem, case.program.plan.axes
    checked = gpu.device.execute(ExecutionRequest(case.program, case.inputs, POISON))
    assert checked.status is Status.PASSED, checked.diagnostics
    with gpu.device.open_timing(case.request([case.side, case.side])) as opened:
        session = _open(opened)
        _replay(session, [0, 1, 1, 0])
        found = _collect(session)
    assert len(found.rotations) == session.facts.sets
    for rotation, outputs in zip(found.rotations, found.outputs, strict=True):
        assert _bytes(outputs) == _bytes(rotate_outputs(problem, axes, checked.outputs, rotation))


def test_without_rows_sets_hold_four_draws_in_turn(gpu: Gpu) -> None:
    case = gpu.tiny_case("  out[at] = x[at] * scale;")
    draws = [{**case.inputs, "x": case.inputs["x"] + np.float32(k)} for k in range(4)]
    checked = [
        gpu.device.execute(ExecutionRequest(case.program, one, POISON)).outputs for one in draws
    ]
    request = replace(
        case.request([case.side]),
        problem=case.program.problem.model_copy(update={"row_axis": None}),
        inputs=draws[0],
        more_inputs=tuple(draws[1:]),
    )
    with gpu.device.open_timing(request) as opened:
        session = _open(opened)
        _replay(session, [0, 0])
        found = _collect(session)
    assert set(found.rotations) == set(range(4))
    for draw, outputs in zip(found.rotations, found.outputs, strict=True):
        assert _bytes(outputs) == _bytes(checked[draw])


def test_an_execution_inside_a_session_leaves_the_session_whole(gpu: Gpu) -> None:
    case = gpu.tiny_case("  out[at] = x[at] * scale;")
    with gpu.device.open_timing(case.request([case.side])) as opened:
        session = _open(opened)
        _replay(session, [0])
        later = gpu.device.execute(
            ExecutionRequest(case.program, case.inputs, POISON, finds_leftovers=True)
        )
        _replay(session, [0])
        found = _collect(session)
    assert later.status is Status.PASSED, later.diagnostics
    problem, axes = case.program.problem, case.program.plan.axes
    for rotation, outputs in zip(found.rotations, found.outputs, strict=True):
        assert _bytes(outputs) == _bytes(rotate_outputs(problem, axes, later.outputs, rotation))


KEEPS_ITS_RESULT = """\
  __shared__ volatile float kept[64];
  __shared__ volatile int tag;
  const bool is_known = tag == 0x1234567;
  __syncthreads();
  const float value = is_known ? kept[threadIdx.x] : x[at] * scale;
  kept[threadIdx.x] = value;
  if (threadIdx.x == 0) tag = 0x1234567;
  out[at] = value;"""


def test_a_result_kept_in_shared_memory_is_wrong_for_other_inputs(gpu: Gpu) -> None:
    case = gpu.tiny_case(KEEPS_ITS_RESULT)
    others = {name: array[::-1].copy() for name, array in case.inputs.items()}
    wanted = gpu.device.execute(ExecutionRequest(case.program, others, POISON))
    # A session has the GPU for itself: a switch to another context clears shared memory.
    with gpu.device.open_timing(case.request([case.side])) as opened:
        _replay(_open(opened), [0])
        found = gpu.device.execute(
            ExecutionRequest(case.program, others, POISON, finds_leftovers=True)
        )
    assert found.status is Status.PASSED, found.diagnostics
    assert _bytes(wanted.outputs) != _bytes(found.outputs)


def test_a_kernel_against_itself_shows_no_difference(gpu: Gpu) -> None:
    case = gpu.case("fused_add_rmsnorm_b128xh4096")
    ratios: list[float] = []
    with gpu.device.open_timing(case.request([case.side, case.side])) as opened:
        session = _open(opened)
        for _ in range(25):
            a, b, c, d = _replay(session, [0, 1, 1, 0]).us_per_call
            ratios += [np.log(a / b), np.log(d / c)]
    assert abs(median(ratios)) < 0.005


def test_empty_kernels_take_about_a_microsecond_and_less_than_the_kernel(gpu: Gpu) -> None:
    case = gpu.case(IN_PLACE)
    with gpu.device.open_timing(
        case.request([case.side, EmptySide(plan=case.program.plan)])
    ) as opened:
        session = _open(opened)
        times = _replay(session, [0, 1] * 5).us_per_call
    assert 0.3 < median(times[1::2]) < 4.0
    assert median(times[1::2]) < median(times[::2])


def test_a_call_takes_as_long_whatever_was_launched_before_and_beside_it(gpu: Gpu) -> None:
    case = gpu.case("merge_state_n8xh64xd128")
    empty = EmptySide(plan=case.program.plan)
    launches = tuple(one.model_copy(update={"pdl": True}) for one in case.program.plan.launches)
    dependent = EmptySide(plan=case.program.plan.model_copy(update={"launches": launches}))
    medians: list[tuple[float, float]] = []
    for beside in ([dependent], []):
        with gpu.device.open_timing(case.request([case.side, empty, *beside])) as opened:
            for _ in range(12):
                # Its launches are no graph's, and every sequence begins with calls of the driver.
                gpu.device.execute(ExecutionRequest(case.program, case.inputs, POISON))
                times = _replay(_open(opened), [0, 1] * 4).us_per_call
                medians.append((median(times[::2]), median(times[1::2])))
    for of_side in zip(*medians, strict=True):
        assert max(of_side) < 1.02 * min(of_side), medians


def test_twice_the_launches_take_longer_and_are_counted(gpu: Gpu) -> None:
    case = gpu.case("silu_and_mul_b128xh14336")
    plan = case.program.plan
    twice = plan.model_copy(update={"launches": plan.launches * 2})
    sides = [case.side, case.side.model_copy(update={"plan": twice})]
    with gpu.device.open_timing(case.request(sides)) as opened:
        session = _open(opened)
        times = _replay(session, [0, 1] * 5).us_per_call
    assert [side.nodes_per_call for side in session.facts.sides] == [1.0, 2.0]
    assert [len(side.kernels) for side in session.facts.sides] == [1, 2]
    assert median(times[1::2]) > 1.2 * median(times[::2])


def test_in_place_operands_are_restored_before_each_replay(gpu: Gpu) -> None:
    case = gpu.case(IN_PLACE)
    with gpu.device.open_timing(case.request([case.side, case.side])) as opened:
        session = _open(opened)
        _replay(session, [0])
        first = _collect(session)
        _replay(session, [0, 1, 0, 1, 1])
        second = _collect(session)
    for before, after in zip(first.outputs, second.outputs, strict=True):
        assert _bytes(before) == _bytes(after)


def test_a_kernel_that_does_nothing_leaves_poison(gpu: Gpu) -> None:
    good, lazy = gpu.tiny_case("  out[at] = x[at] * scale;"), gpu.tiny_case("  (void)at;")
    with gpu.device.open_timing(good.request([good.side, lazy.side])) as opened:
        session = _open(opened)
        _replay(session, [0, 1])
        found = _collect(session)
    assert all(set(outputs["out"].tobytes()) == {POISON} for outputs in found.outputs)


def test_a_large_workload_has_eight_sets(gpu: Gpu) -> None:
    case = gpu.case(LARGE)
    with gpu.device.open_timing(case.request([case.side])) as opened:
        facts = _open(opened).facts
    assert facts.sets == 8
    assert facts.rotation_over_l2 > 4.0


def test_a_warm_call_takes_no_longer_than_a_cold_one(gpu: Gpu) -> None:
    case = gpu.case("add_rmsnorm_fp4quant_b128xh4096")
    with gpu.device.open_timing(case.request([case.side])) as opened:
        session = _open(opened)
        cold_us = median(_replay(session, [0] * 9).us_per_call)
        warm_us = session.warm_us(0)
        _replay(session, [0])
    assert isinstance(warm_us, float), warm_us
    assert 0.3 < warm_us < 1.05 * cold_us


def test_a_call_that_takes_long_is_as_long_warm_as_cold(gpu: Gpu) -> None:
    spin = "  const long long begun = clock64();\n  while (clock64() - begun < 500000) {}\n"
    case = gpu.tiny_case(f"{spin}  out[at] = x[at] * scale;")
    with gpu.device.open_timing(case.request([case.side])) as opened:
        session = _open(opened)
        cold_us = median(_replay(session, [0, 0, 0]).us_per_call)
        warm_us = session.warm_us(0)
    assert isinstance(warm_us, float), warm_us
    assert cold_us > 200.0
    assert 0.9 * cold_us < warm_us < 1.1 * cold_us


def test_telemetry_names_clocks(gpu: Gpu) -> None:
    case = gpu.case(IN_PLACE)
    with gpu.device.open_timing(case.request([case.side])) as opened:
        after = _replay(_open(opened), [0] * 20).after
    assert after.sm_mhz is not None and 100 < after.sm_mhz < 5000
    assert after.memory_mhz is not None and after.temperature_c is not None


def test_a_stray_write_of_a_timed_call_ends_the_session(gpu: Gpu) -> None:
    body = "  out[at] = x[at] * scale;\n  if (at == 0) out[-3] = 0.0f;"
    case = gpu.tiny_case(body)
    with gpu.device.open_timing(case.request([case.side])) as opened:
        session = _open(opened)
        _replay(session, [0])
        outcome = session.collect()
    assert isinstance(outcome, TimingFailure)
    assert outcome.outcome.status is Status.OUT_OF_BOUNDS


def test_a_side_that_crashes_is_named_and_hurts_no_later_session(gpu: Gpu) -> None:
    good = gpu.tiny_case("  out[at] = x[at] * scale;")
    wild = gpu.tiny_case("  out[at + (size_t(H) << 40)] = x[at] * scale;")
    with gpu.device.open_timing(good.request([good.side, wild.side])) as opened:
        assert isinstance(opened, TimingFailure)
        assert (opened.side, opened.outcome.status) == (1, Status.OUT_OF_BOUNDS)
    with gpu.device.open_timing(good.request([good.side])) as opened:
        _replay(_open(opened), [0])


def test_sessions_give_all_memory_back(gpu: Gpu) -> None:
    case = gpu.case(LARGE)  # its eight sets take most of a gigabyte
    used: list[int] = []
    for seed in range(3):
        with gpu.device.open_timing(case.request([case.side], seed)) as opened:
            _open(opened).warm_us(0)
        used.append(own_gpu_bytes(gpu.device.facts.uuid))
    assert used[0] > 0
    assert abs(used[2] - used[0]) < 128 << 20


def test_copies_reach_a_good_part_of_the_data_sheet_and_no_more(gpu: Gpu) -> None:
    peak_gb_s = gpu.device.gpu.dram_bandwidth_gb_s
    assert 0.5 * peak_gb_s < gpu.device.copy_ceiling_gb_s() < 1.02 * peak_gb_s
