"""Winners of a home, as a promotion leaves them: a source and its receipt."""

from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.tools.bench.receipt_file import receipt_text

from .bench_cases import CANDIDATE
from .receipts import evidence, sealed_receipt

WINNER = f"{CANDIDATE.source}\n__device__ float zebra_sum(float stripe) {{ return stripe + 1; }}\n"


def promote(settings: Settings, speedup: float = 1.5, source: str = WINNER) -> Path:
    """Write a winner of `synthetic_b8xh64` on sm_90a; return the path of its source."""
    receipt = sealed_receipt(
        candidate=Candidate(source, "zebra.cu"),
        workloads=(evidence("synthetic_b8xh64", "b8xh64", speedup),),
        geometric_mean_speedup=speedup,
    )
    folder = settings.winners / "synthetic"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "b8xh64.sm_90a.cu"
    path.write_text(source, encoding="utf-8")
    path.with_name("b8xh64.sm_90a.receipt.json").write_text(receipt_text(receipt), "utf-8")
    return path
