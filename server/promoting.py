"""`kopt bench FILE --promote`: a promotion with what the command line gave it."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.promotion_result import PromotionResult
from kopt.search.store.winner import pin_tune
from kopt.server.devices import DeviceChoice, opened_device
from kopt.server.progress import Show
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.bench.winner_files import OnExisting
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.open_device import gpu_problem


@dataclass(frozen=True)
class Promotion:
    """What the command line asked for."""

    case: Case
    choice: DeviceChoice
    winners: Path | None
    on_existing: OnExisting


def promote(promotion: Promotion, settings: Settings, show: Show) -> PromotionResult:
    """Promote the candidate, its tune values made the defaults of its header.

    Raises:
        ToolError: The header does not claim the kernel that was named, or a winner is in the way.
        SetupError: No GPU, no compiler, or a folder that cannot be written.
        InfraError: The device failed.
    """
    case = promotion.case
    _refuse_foreign_kernel(case)
    if case.tune:
        pinned = replace(case.candidate, source=pin_tune(case.candidate.source, case.tune))
        case = Case(case.problem, case.workload, pinned)
    request = PromotionRequest(
        case=case,
        winners=promotion.winners,
        on_existing=promotion.on_existing,
        progress=show,
    )
    return promote_candidate(
        request, lambda: timing_device(promotion.choice, settings, show), settings
    )


@contextmanager
def timing_device(choice: DeviceChoice, settings: Settings, show: Show) -> Generator[TimingDevice]:
    """Open the GPU that `choice` names, with workers of its own; leaving ends them.

    Raises:
        SetupError: There is no GPU, or the simulator was asked for, which measures no time.
    """
    lone = replace(choice, needs_gpu=True, has_spare=False)
    with opened_device(lone, settings, show) as opened:
        if opened.timer is None:
            asked = "sim measures no time" if choice.name == "sim" else gpu_problem()
            raise SetupError(f"a measurement needs a GPU: {asked}")
        yield opened.timer


def _refuse_foreign_kernel(case: Case) -> None:
    """Refuse a kernel that `where` leaves out; a header with mistakes is the check's."""
    claimed = [workload.name for workload in case.domain]
    if claimed and case.workload.name not in claimed:
        raise ToolError(
            f"{case.candidate.name} does not claim {case.workload.name}: its `where` holds for "
            f"{', '.join(claimed)}"
        )
