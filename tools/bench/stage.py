"""The benchmark stage: check, choose baselines, time in pairs, decide."""

from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult

from .request import BenchRequest, TimingDevice

__all__ = ["BenchRequest", "bench_candidate"]


def bench_candidate(
    request: BenchRequest, device: TimingDevice, settings: Settings
) -> BenchResult:
    """Return how fast the candidate is against its baselines, measured on `device`.

    Raises:
        ToolError: Pairs out of range, no library path where one was asked for, or a problem whose
            oracle or reference kernel is at fault.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    raise NotImplementedError
