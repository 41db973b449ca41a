"""Winners of a home, as a promotion leaves them: a source and its receipt."""

from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.shipped_kernels import source_of

from .bench_cases import CANDIDATE
from .receipts import evidence, sealed_receipt, write_winner

WINNER = f"{CANDIDATE.source}\n__device__ float zebra_sum(float stripe) {{ return stripe + 1; }}\n"


def promote(settings: Settings, speedup: float = 1.5, source: str = WINNER) -> Path:
    """Write a winner of `synthetic_b8xh64` on sm_90a; return the path of its source."""
    receipt = sealed_receipt(
        candidate=Candidate(source, "zebra.cu"),
        workloads=(evidence("synthetic_b8xh64", "b8xh64", speedup),),
    )
    (path,) = write_winner(settings.winners / "synthetic", receipt)
    return source_of(path)
