"""A benchmark on whichever device was opened: measured on a GPU, estimated on the simulator."""

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.server.devices import OpenedDevice
from kopt.tools.bench.estimated import bench_estimated
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate


def benchmark(request: BenchRequest, opened: OpenedDevice, settings: Settings) -> BenchResult:
    """Return the times of a candidate and its baselines; on sim the ratio of two estimates.

    Raises:
        ToolError: Libraries were asked for on sim, or the reference kernel is wrong.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    if opened.timer is not None:
        return bench_candidate(request, opened.timer, settings)
    if request.baselines in ("library", "every"):
        raise ToolError(
            f"--baseline {request.baselines} runs libraries, which needs a GPU; on sim there is"
            " the reference kernel alone: leave --baseline out"
        )
    return bench_estimated(request, opened.arch, opened.device, settings)
