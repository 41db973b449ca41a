"""Results of `kopt verify`, made by hand."""

from typing import Any

from kopt.kernels.status import Status, Verdict
from kopt.kernels.verify_result import (
    CubinComparison,
    Reproduction,
    VerifyResult,
    WorkloadReproduction,
)

from .bench_results import H100


def verified(reproduction: Reproduction, **fields: Any) -> VerifyResult:
    """Return the result of one workload, b8xh64; `fields` take the place of its own."""
    known: dict[str, Any] = {
        "status": Status.PASSED,
        "reproduction": reproduction,
        "kernel": "scale_rows_b8xh64",
        "candidate": "c" * 64,
        "receipt": "d" * 64,
        "receipt_gpu": H100.name,
        "device": "cuda:0",
        "gpu": H100,
        "cubins": CubinComparison(
            same=True, receipt_toolchain="nvcc 13.2.86", toolchain="nvcc 13.2.86"
        ),
        "workloads": (
            WorkloadReproduction(
                workload="b8xh64",
                receipt_baseline="reference",
                receipt_library=None,
                receipt_speedup=1.25,
                receipt_range=(1.25, 1.25),
                accepted_range=(1.246, 1.254),
                status=Status.PASSED,
                baseline="reference",
                verdict=Verdict.FASTER,
                speedup=1.251,
                interval=(1.249, 1.253),
                holds=True,
            ),
        ),
        "elapsed_s": 2.0,
    }
    return VerifyResult.model_validate(known | fields)
