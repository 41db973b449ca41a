"""The promotion of a run's candidate: by the rule of `kopt bench --promote`, in fresh processes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.promotion_result import PromotionResult
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunSettings
from kopt.search.store.winner import pin_tune
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.sim.device import SimDevice


def promote_member(
    member: Member, run: RunSettings, settings: Settings, say: Callable[[str], None]
) -> PromotionResult:
    """Promote a candidate with its tune values as defaults; a better old winner stays.

    Raises:
        ToolError: An old winner is in the way that cannot be compared.
        SetupError: No GPU, no compiler, or a folder that cannot be written.
        InfraError: The device failed.
    """
    candidate = Candidate(pin_tune(member.source, member.tune), member.source_name)
    request = PromotionRequest(
        case=Case(*find_kernel(run.kernel, settings.problems), candidate), progress=say
    )
    return promote_candidate(request, lambda: fresh_timer(run.device, settings), settings)


@contextmanager
def fresh_timer(device: str, settings: Settings) -> Generator[TimingDevice]:
    """Open a GPU with worker processes of its own; leaving ends them.

    Raises:
        SetupError: There is no such GPU, or it is the simulator, which measures no time.
    """
    with open_device(device, settings, has_spare=False) as opened:
        if isinstance(opened, SimDevice):
            raise SetupError(f"a measurement needs a GPU: {device} measures no time")
        yield opened
