"""The best kernel that comes with kopt for what a run searched, to put beside the run's winner.

A promoted winner has the time that its receipt measured, on the GPU that the receipt names. Without
a GPU each shipped kernel is estimated as the run's own candidates were, for the same data sheet.
One that does not compile there, or that cannot be simulated, has no estimate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from statistics import median

from kopt.config.callbacks import ignore
from kopt.config.device_names import is_simulated
from kopt.config.errors import KoptError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.best_known import BestKnown, MeasuredWinner
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.shipped_kernels import ShippedKernel, visible_kernels
from kopt.kernels.status import Status
from kopt.tools.bench.estimated import estimate_checked
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Device


@dataclass(frozen=True)
class KnownKernelSearch:
    """Where shipped kernels are looked for, and what estimates them."""

    kernel: str
    """Kernel id."""
    arch: str
    device: Device
    settings: Settings
    progress: Callable[[str], None] = ignore


def find_best_known(asked: KnownKernelSearch) -> BestKnown | None:
    """Return the fastest shipped kernel; None if none has a time, or all are hidden.

    On sim the least estimate decides, on a GPU the least measured time on the same architecture.
    """
    problem, workload = find_kernel(asked.kernel, asked.settings.problems)
    shipped = visible_kernels(problem, workload, asked.settings)
    on_sim = is_simulated(asked.device.name)
    found = [
        BestKnown(
            standing=one.standing,
            arch=one.arch,
            source=str(one.source),
            measured=_measured(one, workload),
            estimated_us=_estimate(one, asked) if on_sim else None,
        )
        for one in shipped
        if on_sim or one.arch == asked.arch
    ]
    timed = [one for one in found if _time_us(one, is_simulated=on_sim) < inf]
    return min(timed, key=lambda one: _time_us(one, is_simulated=on_sim), default=None)


def shipped_known(
    problem: Problem, workload: Workload, settings: Settings
) -> tuple[BestKnown, ...]:
    """Return every shipped kernel with what was measured of it, without estimates."""
    return tuple(
        BestKnown(
            standing=one.standing,
            arch=one.arch,
            source=str(one.source),
            measured=_measured(one, workload),
            estimated_us=None,
        )
        for one in visible_kernels(problem, workload, settings)
    )


def _time_us(known: BestKnown, *, is_simulated: bool) -> float:
    """Return the time that shipped kernels are ordered by; infinity for none."""
    if is_simulated:
        return inf if known.estimated_us is None else known.estimated_us
    return inf if known.measured is None else known.measured.latency_us


def _measured(one: ShippedKernel, workload: Workload) -> MeasuredWinner | None:
    if one.standing != "winner":
        return None
    try:
        receipt = read_receipt(one.evidence)
    except KoptError:  # `kopt verify` says what is wrong with it
        return None
    entry = next((entry for entry in receipt.workloads if entry.workload == workload.name), None)
    if entry is None:
        return None
    return MeasuredWinner(
        latency_us=median(part.latency.median_us for part in entry.measurements),
        gpu=receipt.device.name,
        speedup=entry.speedup,
        baseline=entry.baseline.label,
    )


def _estimate(one: ShippedKernel, asked: KnownKernelSearch) -> float | None:
    """Return the estimate on the run's architecture, once a quick check has passed there."""
    asked.progress(f"estimating the kernel that comes with kopt, {one.label}")
    try:
        case = Case(*find_kernel(asked.kernel, asked.settings.problems), read_candidate(one.source))
        request = CheckRequest(case, "quick", arch=asked.arch)
        check = check_candidate(request, asked.device, asked.settings)
        if check.status is not Status.PASSED:
            return None
        gpu = asked.device.gpu or gpu_for_arch(asked.arch)
        return estimate_checked(request, check, gpu, asked.settings).latency_us
    except KoptError:  # the run is done: a kernel that cannot be run here is left out
        return None
