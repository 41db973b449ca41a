"""Measuring a checked candidate again and again: fresh workers, fresh allocations, all workloads.

It ends at the first round in which a workload is refused; what the measurements say together is
`agreement.py`'s.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from kopt.config.callbacks import ignore, prefixed
from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Workload
from kopt.tools.devices.timer import TimingDevice

from .agreement import Attempt, refusal
from .request import BenchRequest
from .stage import bench_candidate

PROCESSES = 2
"""Worker processes, each started for these measurements alone."""
ALLOCATIONS = 3
"""Timing sessions in each, every one with buffers of its own: addresses decide which memory
channels are hit."""

OpenDevice = Callable[[], AbstractContextManager[TimingDevice]]
"""Opens the GPU with worker processes of its own; leaving ends them."""


@dataclass(frozen=True)
class CheckedCandidate:
    """What is timed: exactly the binaries that the full check ran."""

    case: Case
    workloads: tuple[Workload, ...]
    check: CheckResult
    """Passed, at level full, over all of `workloads`."""
    facts: DeviceFacts
    """The GPU that it was checked on."""
    gpu: GpuSpec
    """Its limits and peaks."""

    def check_of(self, workload: Workload) -> CheckResult:
        """Return the check as one of `workload`: it covers the whole domain."""
        return self.check.model_copy(update={"kernel": self.case.problem.kernel_id(workload)})


def time_repeatedly(
    checked: CheckedCandidate,
    open_device: OpenDevice,
    settings: Settings,
    progress: Callable[[str], None] = ignore,
) -> tuple[Attempt, ...]:
    """Return every measurement, in the order made; the last round may hold refusals.

    Raises:
        InfraError: The device failed, is another one than before, or a cubin is no longer what was
            checked.
        ToolError: The problem's reference kernel is at fault.
        SetupError: The GPU cannot be opened again.
    """
    attempts: list[Attempt] = []
    for process in range(1, PROCESSES + 1):
        with open_device() as device:
            require_same_gpu(checked.facts, device.facts)
            require_checked_cubins(checked.check)
            for allocation in range(1, ALLOCATIONS + 1):
                made = _round(checked, (process, allocation), device, settings, progress)
                attempts += made
                if any(refusal(attempt) is not None for attempt in made):
                    return tuple(attempts)
            require_checked_cubins(checked.check)
    return tuple(attempts)


def _round(
    checked: CheckedCandidate,
    place: tuple[int, int],
    device: TimingDevice,
    settings: Settings,
    progress: Callable[[str], None],
) -> list[Attempt]:
    """Measure every workload once, so that all that are refused are known."""
    process, allocation = place
    before = f"process {process} of {PROCESSES}, allocation {allocation} of {ALLOCATIONS}"
    made: list[Attempt] = []
    for workload in checked.workloads:
        request = BenchRequest(
            case=checked.case.at(workload),
            checked=checked.check_of(workload),
            may_end_early=False,
            progress=prefixed(progress, f"{before}, {workload.name}"),
        )
        made.append(Attempt(workload, process, allocation, time_once(request, device, settings)))
    return made


def time_once(request: BenchRequest, device: TimingDevice, settings: Settings) -> BenchResult:
    """Return one measurement, of the binary that was checked and no other.

    Raises:
        InfraError: The device failed, or the timing took another binary.
    """
    result = bench_candidate(request, device, settings)
    checked = request.checked
    if checked is not None and result.check.compiled.binary_id != checked.compiled.binary_id:
        raise InfraError("the binary that was timed is not the one that was checked")
    return result


def require_same_gpu(before: DeviceFacts, now: DeviceFacts) -> None:
    """Refuse to go on on another GPU, or under another driver.

    Raises:
        InfraError: The message says what changed.
    """
    for name in ("uuid", "driver_version"):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            raise InfraError(f"the GPU is not the one of before: {name} {new}, not {old}")


def require_checked_cubins(check: CheckResult) -> None:
    """Refuse to go on where a cubin on disk is no longer the one that was checked.

    Raises:
        InfraError: It has other bytes, or is gone.
    """
    for build in check.compiled.builds:
        try:
            found = hashlib.sha256(Path(build.cubin_path).read_bytes()).hexdigest()
        except OSError as error:
            raise InfraError(f"cannot read {build.cubin_path}: {error.strerror}") from error
        if found != build.cubin_sha256:
            raise InfraError(f"{build.cubin_path} was changed after it was checked")


def by_workload(attempts: Sequence[Attempt]) -> dict[str, list[Attempt]]:
    """Return the measurements by workload, each in the order made."""
    found: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        found.setdefault(attempt.workload.name, []).append(attempt)
    return found
