"""Receipts made by hand, with samples that their speedups follow from."""

import hashlib
import json
from collections.abc import Mapping
from math import exp, log
from pathlib import Path
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
from kopt.kernels.check_result import (
    SANITIZER_TOOLS,
    SanitizerResult,
    SanitizerRun,
    WorkloadCheck,
)
from kopt.kernels.receipt import (
    Receipt,
    ReceiptCheck,
    ReceiptCubin,
    ReceiptToolchain,
    RepeatedMeasurement,
    WorkloadEvidence,
)
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.intervals import median_interval
from kopt.tools.bench.receipt_file import receipt_text
from kopt.tools.bench.receipt_parts import parts_of

from .bench_cases import CANDIDATE
from .bench_results import H100, latency

FLOOR = NoiseFloor(
    median=0.001, half_width=0.002, pairs=100, cached=False, measured_at="2026-01-01T00:00:00+00:00"
)


def measurement(speedup: float, number: int) -> RepeatedMeasurement:
    """Return the `number`-th measurement, counted from 0, of about `speedup`."""
    ratios = tuple(
        log(speedup) + 0.001 * ((7 * i + number) % 5 - 2) + 1e-9 * number for i in range(100)
    )
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


def _proof(
    workloads: tuple[WorkloadEvidence, ...], candidate: Candidate, arch: str
) -> dict[str, Any]:
    """Return what stands before the timings of workloads: binaries, check, sanitizer."""
    names = tuple(entry.workload for entry in workloads)
    checks = tuple(passed_check(name) for name in names)
    return {
        "cubins": (ReceiptCubin(arch=arch, defines={}, workloads=names, sha256="a" * 64),),
        "check": ReceiptCheck(level="full", visible_seeds=(1, 2, 3), workloads=checks),
        "sanitizer": tuple(passed_sanitizer(entry.kernel, candidate) for entry in workloads),
    }


def passed_check(workload: str) -> WorkloadCheck:
    """Return the full check of one workload."""
    return WorkloadCheck(
        workload=workload,
        status=Status.PASSED,
        visible_seeds=3,
        hidden_seeds=2,
        poisons=2,
        schedules=7,
        executions=7,
        elapsed_s=1.0,
    )


def passed_sanitizer(kernel: str, candidate: Candidate = CANDIDATE) -> SanitizerResult:
    """Return what compute-sanitizer says of a candidate without findings."""
    return SanitizerResult(
        status=Status.PASSED,
        kernel=kernel,
        candidate=candidate.id,
        device="cuda:0",
        gpu=H100,
        sanitizer="compute-sanitizer 2025.3.1",
        runs=tuple(
            SanitizerRun(tool=tool, outcome="passed", status=Status.PASSED, elapsed_s=0.1)
            for tool in SANITIZER_TOOLS
        ),
        elapsed_s=0.4,
    )


def old_format(receipt: Receipt) -> str:
    """Return the file of `receipt` in format 1, which holds the source."""
    document = json.loads(receipt_text(receipt))
    for name in ("digest", "promotion", "source_file", "domain"):
        del document[name]
    document |= {"schema": "kopt.receipt/1", "source": receipt.source}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()})


def claiming_one(candidate: Candidate) -> Candidate:
    """Return `candidate` with a header that claims the workload of `sealed_receipt` alone."""
    first, rest = candidate.source.split("\n", 1)
    return Candidate(f'{first}\nwhere: "B == 8"\n{rest}', candidate.name)


def sealed_receipt(
    problem: str = "synthetic", candidate: Candidate = CANDIDATE, **fields: Any
) -> Receipt:
    """Return the receipt of one workload, b8xh64; `fields` take the place of its own."""
    (receipt,) = sealed_receipts(problem, candidate, **fields)
    return receipt


def write_winner(folder: Path, *receipts: Receipt) -> list[Path]:
    """Write receipts and their source to `folder`, as a promotion does; return the receipts."""
    names = (f"{one.workloads[0].workload}.{one.arch}.receipt.json" for one in receipts)
    return [write_receipt(folder / name, one) for name, one in zip(names, receipts, strict=True)]


def write_receipt(path: Path, receipt: Receipt) -> Path:
    """Write a receipt to `path`, with its source beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(receipt.source_file).write_text(receipt.source, "utf-8")
    path.write_text(receipt_text(receipt), "utf-8")
    return path


def sealed_receipts(
    problem: str = "synthetic", candidate: Candidate = CANDIDATE, **fields: Any
) -> tuple[Receipt, ...]:
    """Return the receipts of a promotion; `fields` take the place of one of b8xh64 alone."""
    known: Mapping[str, Any] = {
        "kopt_version": __version__,
        "promoted_at": "2026-01-01T00:00:00+00:00",
        "problem": problem,
        "problem_files": {},
        "candidate": candidate.id,
        "source_name": candidate.name,
        "source_file": f"{problem}.sm_90a.cu",
        "source": candidate.source,
        "tune": {},
        "arch": "sm_90a",
        "device": H100,
        "toolchain": ReceiptToolchain(compiler="nvcc", version="13.2.86"),
        "plans": {},
        "sandbox": "bubblewrap",
        "workloads": (evidence(f"{problem}_b8xh64", "b8xh64"),),
    }
    workloads = fields.get("workloads", known["workloads"])
    known = {**known, **_proof(workloads, candidate, fields.get("arch", "sm_90a"))}
    mean = geometric_mean(entry.speedup for entry in workloads)
    domain = tuple(entry.workload for entry in workloads)
    made = {"geometric_mean_speedup": mean, "domain": domain, **known, **fields}
    return parts_of(Receipt.model_validate(made))
