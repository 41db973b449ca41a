"""What `kopt bench` says without a GPU: the candidate's estimate against the reference kernel's."""

from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.tools.device import Device

from .request import BenchRequest


def bench_estimated(
    request: BenchRequest, arch: str, device: Device, settings: Settings
) -> BenchResult:
    """Return a ratio of estimates for `arch`, verdict `estimated`; nothing is timed."""
    raise NotImplementedError
