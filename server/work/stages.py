"""Each stage on an opened device, as the command line, tool calls and `import kopt` enter it.

A stage is imported where it begins: a process that checks loads nothing that times or profiles.
Besides what is named below, each raises `SetupError` where this machine lacks a compiler, a sandbox
or a folder that can be written, and `InfraError` where the machine failed and not the candidate.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.profile_result import ProfileChoices, ProfileResult
from kopt.kernels.status import Status
from kopt.server.opened_device import OpenedDevice
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.request import CheckRequest

if TYPE_CHECKING:
    from kopt.kernels.review_result import ReviewResult
    from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest
    from kopt.tools.review.extension_stage import ExtensionRequest
    from kopt.tools.review.stage import ReviewRequest

_NEVER_BUILT = (Status.PLAN_ERROR, Status.REFUSED, Status.COMPILE_ERROR)


def check(
    request: CheckRequest, opened: OpenedDevice, settings: Settings, *, sanitized: bool = False
) -> CheckResult:
    """Return whether a candidate is right on a device, compiled for that device.

    With `sanitized` compute-sanitizer examines it too, also where it is wrong; on a GPU only.

    Raises:
        ToolError: No seeds, or an oracle at fault.
    """
    from kopt.tools.check.stage import check_candidate

    asked_here = replace(request, arch=opened.arch)
    result = check_candidate(asked_here, opened.device, settings)
    if opened.timer is None or result.status in _NEVER_BUILT:
        return result
    if sanitized:
        from kopt.tools.sanitize.stage import SanitizeRequest, sanitize

        asked = SanitizeRequest(request.case, progress=request.progress)
        found = sanitize(asked, opened.timer, settings)
        status = found.status if result.status is Status.PASSED else result.status
        result = result.model_copy(update={"sanitizer": found, "status": status})
    if request.level == "full":
        from kopt.tools.bench.full_check import keep_outcome

        keep_outcome(asked_here, result, opened.timer, settings)
    return result


def bench(request: BenchRequest, opened: OpenedDevice, settings: Settings) -> BenchResult:
    """Return the times of a candidate and its baselines; on sim the ratio of two estimates.

    Raises:
        ToolError: Libraries were asked for on sim, or the reference kernel is wrong.
    """
    if opened.timer is not None:
        from kopt.tools.bench.stage import bench_candidate

        return bench_candidate(request, opened.timer, settings)
    if request.baselines in ("library", "every"):
        raise ToolError(
            f"--baseline {request.baselines} runs libraries, which needs a GPU; on sim there is"
            " the reference kernel alone: leave --baseline out"
        )
    from kopt.tools.bench.estimated import bench_estimated

    return bench_estimated(request, opened.arch, opened.device, settings)


def profile(request: "ProfileRequest", opened: OpenedDevice, settings: Settings) -> ProfileResult:
    """Return what limits a candidate; on a GPU with its time and the hardware's counters.

    Raises:
        ToolError: The candidate has no plan for the device.
    """
    from kopt.search.advice.needs import with_helpful_families
    from kopt.tools.profiling.stage import profile_candidate

    on_device = replace(request, arch=opened.arch)
    found = profile_candidate(on_device, settings, _profiling_devices(opened, settings))
    dtypes = {one.dtype for one in request.case.problem.tensors}
    return with_helpful_families(found, dtypes)


def profile_choices(
    request: "ProfileRequest", opened: OpenedDevice, settings: Settings
) -> ProfileChoices:
    """Return one row for each choice of tune values, the fastest first.

    Raises:
        ToolError: The header has mistakes or no tune values, or there are too many choices.
    """
    from kopt.tools.profiling import choices

    on_device = replace(request, arch=opened.arch)
    return choices.profile_choices(on_device, settings, _profiling_devices(opened, settings))


def review(request: "ReviewRequest", opened: OpenedDevice, settings: Settings) -> "ReviewResult":
    """Return whether a claim holds; on sim nothing is said of speed, unless physics refutes it.

    Raises:
        ToolError: The problem's oracle or reference kernel is at fault.
    """
    from kopt.tools.review.stage import Reviewer, review_candidate

    on_device = replace(request, arch=opened.arch)
    return review_candidate(on_device, Reviewer(opened.device, opened.timer, settings))


def review_torch(
    request: "ExtensionRequest", opened: OpenedDevice, settings: Settings
) -> "ReviewResult":
    """Return whether a claim about a torch extension is refuted, or cannot be told.

    Raises:
        ToolError: The problem's oracle or reference kernel is at fault.
    """
    from kopt.tools.review.extension_stage import review_extension
    from kopt.tools.review.stage import Reviewer

    asked = replace(request, review=replace(request.review, arch=opened.arch))
    return review_extension(asked, Reviewer(opened.device, opened.timer, settings))


def _profiling_devices(opened: OpenedDevice, settings: Settings) -> "ProfileDevices":
    """Return the simulator, which counts, and the GPU, if there is one, which measures."""
    from kopt.tools.profiling.stage import ProfileDevices
    from kopt.tools.sim.device import SimDevice

    if opened.timer is None:
        return ProfileDevices(opened.device)
    return ProfileDevices(SimDevice(settings), opened.timer)
