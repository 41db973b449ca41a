"""The time of one candidate on a GPU, beside empty kernels of its launch shapes; no baseline.

A short session of a benchmark's protocol: rotating buffer sets, CUDA graphs, restore and poison
between replays. It is for orientation: values are not compared with the oracle, and nothing
is called faster or slower.
"""

import secrets
from statistics import median

import numpy as np

from kopt.config.errors import InfraError
from kopt.kernels.bench_result import Latency, Rotation
from kopt.kernels.profile_result import MeasuredTime
from kopt.kernels.roofline import ByteModel, roofline
from kopt.tools.devices.device import ExecutionOutcome
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import (
    CandidateSide,
    EmptySide,
    TimingDevice,
    TimingFacts,
    TimingFailure,
    TimingRequest,
)

from .launchable import Launchable, timing_inputs

_CANDIDATE, _EMPTY = 0, 1
_BLOCKS = 15
_BLOCK = (_CANDIDATE, _EMPTY, _EMPTY, _CANDIDATE)
"""ABBA: 30 replays of each side; a replay is the mean over all sets."""
_WARMUP_CALLS = 500
_POISON = 0xFF
_TIMEOUT_S = 60.0


def measure_time(
    launchable: Launchable, model: ByteModel, device: TimingDevice
) -> MeasuredTime | ExecutionOutcome:
    """Return the time of one call, or how the candidate ended instead.

    Raises:
        SetupError: No worker can start here.
        InfraError: The device failed, not the candidate.
    """
    case, plan = launchable.case, launchable.plan
    candidate = CandidateSide(plan=plan, cubin_path=launchable.build.cubin_path)
    request = TimingRequest(
        problem=case.problem,
        workload=case.workload,
        sides=(candidate, EmptySide(plan=plan)),
        inputs=timing_inputs(case),
        poison=_POISON,
        layout_seed=secrets.randbits(32),
        warmup_calls=_WARMUP_CALLS,
        timeout_s=_TIMEOUT_S,
    )
    timed = _replayed(device, request)
    if isinstance(timed, ExecutionOutcome):
        return timed
    times, facts = timed
    null_us = median(times[_EMPTY])
    line = roofline(model, launchable.gpu)
    # Another candidate may do with one launch; that of these takes its share.
    floor_us = max(line.memory_floor_us, line.compute_floor_us, null_us / len(plan.launches))
    copy_gb_s = device.copy_ceiling_gb_s()
    latency = _latency(times[_CANDIDATE])
    achieved_gb_s = model.total_bytes / latency.median_us / 1e3  # bytes/us = 1e6 bytes/s
    return MeasuredTime(
        device=device.name,
        gpu=device.facts,
        latency=latency,
        null_kernel_us=null_us,
        above_null_us=latency.median_us - null_us,
        achieved_gb_s=achieved_gb_s,
        roofline_fraction=floor_us / latency.median_us,
        copy_gb_s=copy_gb_s,
        copy_fraction=achieved_gb_s / copy_gb_s,
        rotation=Rotation(
            sets=facts.sets, set_bytes=facts.set_bytes, over_l2=facts.rotation_over_l2
        ),
    )


@begun_again
def _replayed(
    device: TimingDevice, request: TimingRequest
) -> tuple[tuple[list[float], list[float]], TimingFacts] | ExecutionOutcome:
    """Return the times of one call of each side, and how they were taken."""
    times: tuple[list[float], list[float]] = ([], [])
    with device.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return _blamed(session)
        for _ in range(_BLOCKS):
            replays = session.replay(_BLOCK)
            if isinstance(replays, TimingFailure):
                return _blamed(replays)
            for side, us in zip(_BLOCK, replays.us_per_call, strict=True):
                times[side].append(us)
        return times, session.facts


def _blamed(failure: TimingFailure) -> ExecutionOutcome:
    """Return how the candidate ended; empty kernels do not fail, unless the machine does."""
    if failure.side == _EMPTY:
        raise InfraError(f"empty kernels failed on the GPU: {failure.outcome.status}")
    return failure.outcome


def _latency(us: list[float]) -> Latency:
    p10, p50, p90 = (float(value) for value in np.percentile(us, (10, 50, 90)))
    return Latency(median_us=p50, p10_us=p10, p90_us=p90, min_us=min(us), replays=len(us))
