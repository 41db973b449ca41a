"""The promotion of a run's candidate: by the rule of `kopt bench --promote`, in fresh processes.

A run searches at one workload, and what it finds may be slow at others. It is promoted for those
that it holds at, its own among them, by measurements of their own.
"""

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
from kopt.search.store.winner import claim, pin_tune
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice, as_timer


def promote_member(
    member: Member, run: RunSettings, settings: Settings, say: Callable[[str], None]
) -> PromotionResult:
    """Promote a candidate with its tune values as defaults; a better old winner stays.

    Where it falls short at other workloads than the run's, it is put to the promotion again, with a
    `where` that leaves them out: `claimed` of the result.

    Raises:
        ToolError: An old winner is in the way that cannot be compared.
        SetupError: No GPU, no compiler, or a folder that cannot be written.
        InfraError: The device failed.
    """
    problem, workload = find_kernel(run.kernel, settings.problems)

    def promoted(source: str) -> PromotionResult:
        case = Case(problem, workload, Candidate(source, member.source_name))
        request = PromotionRequest(case=case, progress=say)
        return promote_candidate(request, lambda: fresh_timer(run.device, settings), settings)

    source, claimed = pin_tune(member.source, member.tune), None
    result = promoted(source)
    # Each turn leaves out a workload more.
    while (narrower := result.narrower) is not None and narrower.has(workload.name):
        claimed = narrower.where
        say(f"not for all workloads: {'; '.join(result.reasons)}; once more with where: {claimed}")
        result = promoted(claim(source, claimed))
    return result.model_copy(update={"claimed": claimed})


@contextmanager
def fresh_timer(device: str, settings: Settings) -> Generator[TimingDevice]:
    """Open a GPU with worker processes of its own; leaving ends them.

    Raises:
        SetupError: There is no such GPU, or it is the simulator, which measures no time.
    """
    with open_device(device, settings, has_spare=False, is_fresh=True) as opened:
        timer = as_timer(opened)
        if timer is None:
            raise SetupError(f"a measurement needs a GPU: {device} measures no time")
        yield timer
