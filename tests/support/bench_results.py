"""Benchmark results as the stage would give them on a GPU, for tests of what reads them."""

from typing import Any

from kopt.kernels.bench_result import (
    BaselinePath,
    BenchResult,
    Comparison,
    DeviceState,
    Latency,
    LikeForLike,
    NoiseFloor,
    RejectedBaseline,
    Rotation,
    TimedOutputs,
)
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.status import Status, Verdict

KERNEL = "silu_and_mul_b8xh14336"
H100 = DeviceFacts(
    index=0,
    uuid="GPU-1",
    name="NVIDIA H100 80GB HBM3",
    compute_capability=(9, 0),
    sm_count=132,
    l2_bytes=52428800,
    memory_bytes=80 << 30,
    driver_version="580.159.04",
    cuda_version="13.0",
)


def latency(median_us: float) -> Latency:
    """Return a measured latency with a little spread."""
    return Latency(
        median_us=median_us,
        p10_us=median_us * 0.99,
        p90_us=median_us * 1.01,
        min_us=median_us * 0.98,
        replays=200,
    )


def comparison(verdict: Verdict = Verdict.FASTER, **fields: Any) -> Comparison:
    """Return the candidate against FlashInfer: 1.213 times as fast, unless `fields` differ."""
    known: dict[str, Any] = {
        "baseline": BaselinePath(name="flashinfer_cute", pdl=True, library="flashinfer 0.7.2"),
        "verdict": verdict,
        "speedup": 1.213,
        "interval": (1.205, 1.221),
        "pairs": 100,
        "baseline_latency": latency(2.9),
        "noise_floor": NoiseFloor(
            median=0.001, half_width=0.0011, pairs=100, cached=True, measured_at="2026-01-01"
        ),
        "like_for_like": LikeForLike(holds=True),
        "log_ratios": (0.19, 0.2),
    }
    return Comparison(**(known | fields))


def check(status: Status = Status.PASSED) -> CheckResult:
    """Return a quick check on the GPU."""
    return CheckResult(
        status=status,
        kernel=KERNEL,
        candidate="c" * 64,
        device="cuda:0",
        level="quick",
        compiled=CompileResult(status=Status.PASSED, kernel=KERNEL, candidate="c" * 64),
        sandbox="bubblewrap",
        elapsed_s=0.5,
    )


def bench_result(verdict: Verdict | None = Verdict.FASTER, **fields: Any) -> BenchResult:
    """Return a whole result with `verdict` against the main baseline."""
    known: dict[str, Any] = {
        "status": Status.PASSED,
        "verdict": verdict,
        "kernel": KERNEL,
        "candidate": "c" * 64,
        "device": "cuda:0",
        "gpu": H100,
        "comparisons": () if verdict is None else (comparison(verdict),),
        "rejected": (
            RejectedBaseline(
                name="flashinfer", pdl=False, status="failed_check", reason="output never written"
            ),
        ),
        "latency": latency(2.39),
        "warm_us": 1.9,
        "null_kernel_us": 1.11,
        "memory_floor_us": 0.2,
        "achieved_gb_s": 2100.0,
        "copy_gb_s": 3000.0,
        "rotation": Rotation(sets=107, set_bytes=1_900_000, over_l2=4.1),
        "timed_outputs": TimedOutputs(calls=214, identical=214, within_gates=0),
        "state": DeviceState(sm_mhz=(1980, 1980), memory_mhz=(2619, 2619), temperature_c=(40, 42)),
        "check": check(),
        "checked": "full",
        "elapsed_s": 1.2,
    }
    return BenchResult.model_validate(known | fields)


def failed_bench(status: Status, **fields: Any) -> BenchResult:
    """Return the result of a candidate that is not timed."""
    known: dict[str, Any] = {
        "status": status,
        "verdict": None,
        "kernel": KERNEL,
        "candidate": "c" * 64,
        "device": "cuda:0",
        "gpu": H100,
        "check": check(status),
        "elapsed_s": 0.6,
    }
    return BenchResult.model_validate(known | fields)
