"""Receipts made by hand, with samples that their speedups follow from."""

from collections.abc import Mapping
from math import exp, log
from statistics import geometric_mean, median
from typing import Any

from kopt import __version__
from kopt.kernels.bench_result import (
    BaselinePath,
    DeviceState,
    LikeForLike,
    NoiseFloor,
    Rotation,
    TimedOutputs,
)
from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import (
    Receipt,
    ReceiptCheck,
    ReceiptCubin,
    ReceiptToolchain,
    RepeatedMeasurement,
    WorkloadEvidence,
)
from kopt.kernels.status import Verdict
from kopt.tools.bench.intervals import median_interval
from kopt.tools.bench.receipt_file import seal

from .bench_cases import CANDIDATE
from .bench_results import H100, latency

FLOOR = NoiseFloor(
    median=0.001, half_width=0.002, pairs=100, cached=False, measured_at="2026-01-01T00:00:00+00:00"
)


def measurement(speedup: float, number: int) -> RepeatedMeasurement:
    """Return the `number`-th measurement, counted from 0, of about `speedup`."""
    ratios = tuple(log(speedup) + 0.001 * ((7 * i + number) % 5 - 2) for i in range(100))
    interval = median_interval(ratios, number)
    return RepeatedMeasurement(
        process=1 + number // 3,
        allocation=1 + number % 3,
        seed=number,
        verdict=Verdict.FASTER,
        speedup=exp(interval.median),
        interval=(exp(interval.low), exp(interval.high)),
        pairs=100,
        dropped_pairs=0,
        log_ratios=ratios,
        noise_floor=FLOOR,
        latency=latency(4.0),
        baseline_latency=latency(4.0 * speedup),
        rotation=Rotation(sets=8, set_bytes=1 << 20, over_l2=4.1),
        timed_outputs=TimedOutputs(calls=16, identical=16, within_gates=0),
        state=DeviceState(sm_mhz=(1980, 1980)),
    )


def evidence(kernel: str, workload: str, speedup: float = 1.25) -> WorkloadEvidence:
    """Return six measurements against the reference kernel."""
    measurements = tuple(measurement(speedup, number) for number in range(6))
    speedups = [one.speedup for one in measurements]
    return WorkloadEvidence(
        workload=workload,
        kernel=kernel,
        baseline=BaselinePath(name="reference"),
        baseline_reason="the problem's reference kernel: the problem names no library",
        like_for_like=LikeForLike(holds=True),
        measurements=measurements,
        speedup=median(speedups),
        range=(min(speedups), max(speedups)),
    )


def claiming_one(candidate: Candidate) -> Candidate:
    """Return `candidate` with a header that claims the workload of `sealed_receipt` alone."""
    first, rest = candidate.source.split("\n", 1)
    return Candidate(f'{first}\nwhere: "B == 8"\n{rest}', candidate.name)


def sealed_receipt(
    problem: str = "synthetic", candidate: Candidate = CANDIDATE, **fields: Any
) -> Receipt:
    """Return a receipt of one workload, b8xh64; `fields` take the place of its own."""
    known: Mapping[str, Any] = {
        "kopt_version": __version__,
        "promoted_at": "2026-01-01T00:00:00+00:00",
        "problem": problem,
        "problem_files": {},
        "candidate": candidate.id,
        "source_name": candidate.name,
        "source": candidate.source,
        "tune": {},
        "arch": "sm_90a",
        "device": H100,
        "toolchain": ReceiptToolchain(compiler="nvcc", version="13.2.86"),
        "cubins": (
            ReceiptCubin(arch="sm_90a", defines={}, workloads=("b8xh64",), sha256="a" * 64),
        ),
        "plans": {},
        "check": ReceiptCheck(level="full", visible_seeds=(1, 2, 3), workloads=()),
        "sanitizer": (),
        "sandbox": "bubblewrap",
        "workloads": (evidence(f"{problem}_b8xh64", "b8xh64"),),
    }
    workloads = fields.get("workloads", known["workloads"])
    mean = geometric_mean(entry.speedup for entry in workloads)
    return seal(Receipt.model_validate({"geometric_mean_speedup": mean, **known, **fields}))
