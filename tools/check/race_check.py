"""The simulator's part in a full check on a GPU: races and wild accesses that no output shows.

A GPU schedules threads nearly the same way every time, so that a race may give right outputs in
every run that is made. The simulator sees each access. It runs, beside the GPU, the smallest
workload of every way through the candidate (another cubin or other launches are another way), and
drawn shapes that are no larger.
"""

from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod
from time import perf_counter

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError, SetupError
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.check_result import RaceCheck
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Workload
from kopt.kernels.record import Diagnostic, because
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device
from kopt.tools.sim.device import SimDevice

from .cases import InputCase, Run, Seeds, buffer_bytes, plan_cases
from .run_cases import BatchResult, CaseBatch, run_cases
from .unwritten_gate import POISONS

_NOT_JUDGED = (Status.UNSUPPORTED_ON_SIM, Status.LAUNCH_ERROR, Status.TIMEOUT)
"""Statuses that say something of the simulator: a CPU can do less than a GPU, and later."""


_ONLY_TIMED = "every workload here is `use: time`, which the simulator never runs"


@dataclass(frozen=True)
class _Said:
    """What the simulator said of a candidate."""

    summary: RaceCheck
    refused: BatchResult | None = None
    """The failed run, where it found something."""
    unexecuted_lines: tuple[int, ...] = ()


def run_with_race_check(
    batch: CaseBatch, simulated: CaseBatch, device: Device, settings: Settings
) -> BatchResult:
    """Execute and judge `batch` on a GPU, and refuse what the simulator finds beside it.

    What the GPU finds goes first, and ends the simulation.

    Args:
        batch: What the GPU runs.
        simulated: The same with the simulator's plans.
        device: The GPU.
        settings: Where the simulator keeps its programs.

    Raises:
        SetupError, ToolError, InfraError: As of `run_cases`, of the GPU alone: a simulator that
            fails gives no race check.
    """
    with _simulating(simulated, settings) as future:
        result = run_cases(batch, device, settings)
        if result.status is not Status.PASSED:
            return result
        if not future.done():
            batch.progress("waiting for the race check on the simulator")
        said = future.result()
    result = replace(result, race_check=said.summary, unexecuted_lines=said.unexecuted_lines)
    return result if said.refused is None else _refused(result, said.refused, device)


@contextmanager
def _simulating(batch: CaseBatch, settings: Settings) -> Generator[Future[_Said]]:
    """Give what the simulator will say; what it still does at the end is stopped."""
    stop = PollableEvent()
    with thread_pool(1, "race check") as pool:
        try:
            yield pool.submit(_judge, batch, SimDevice(settings, stop=stop), settings)
        finally:
            stop.set()


def _judge(batch: CaseBatch, simulator: Device, settings: Settings) -> _Said:
    start = perf_counter()
    cases = race_cases(batch)
    if not cases:
        return _Said(RaceCheck(outcome="unavailable", reason=_ONLY_TIMED))
    quiet = replace(batch, cubins={}, cases=cases, progress=ignore)
    try:
        found = run_cases(quiet, simulator, settings)
    except (SetupError, InfraError) as error:
        return _Said(RaceCheck(outcome="unavailable", reason=str(error)))
    summary = RaceCheck(
        outcome="passed",
        workloads=tuple(dict.fromkeys(case.workload.name for case in cases)),
        elapsed_s=perf_counter() - start,
    )
    if found.status is Status.PASSED:
        unseen = timed_alone(batch)
        if unseen:
            reason = f"kernels that only {', '.join(unseen)} launches, a shape to be timed"
            reason += f", were not simulated; none was found at {', '.join(summary.workloads)}"
            summary = summary.model_copy(update={"outcome": "unavailable", "reason": reason})
        return _Said(summary, unexecuted_lines=found.unexecuted_lines)
    reason = f"{found.status}{because(found.diagnostics)}"
    if found.status in _NOT_JUDGED:
        return _Said(summary.model_copy(update={"outcome": "unavailable", "reason": reason}))
    return _Said(summary.model_copy(update={"outcome": "findings", "reason": reason}), found)


def race_cases(batch: CaseBatch) -> tuple[InputCase, ...]:
    """Return what the simulator runs of `batch`: ordinary inputs, two orders of blocks and threads.

    Shapes that were drawn take part where they are no larger than the named workloads that do. None
    where every workload is there to be timed.
    """
    problem = batch.case.problem
    chosen = _smallest_of_each_way(batch)
    if not chosen:
        return ()
    most = max(buffer_bytes(problem, workload) for workload in chosen)
    seed = next(case.seed for case in batch.cases if not case.hidden)
    named = plan_cases(problem, chosen, "quick", Seeds((seed,)))
    runs = tuple(Run(poison, order) for order, poison in enumerate(POISONS))
    drawn = (case for case in batch.cases if case.drawn)
    small = (case for case in drawn if buffer_bytes(problem, case.workload) <= most)
    return (*(replace(case, runs=runs) for case in named), *small)


def _smallest_of_each_way(batch: CaseBatch) -> tuple[Workload, ...]:
    """Return the smallest workload of each cubin and list of launches, with two blocks if any."""
    problem, ways = batch.case.problem, dict[object, Workload]()
    named = {
        case.workload.name: case.workload
        for case in batch.cases
        if not case.drawn and case.workload.use != "time"
    }

    def cost(workload: Workload) -> tuple[bool, int]:
        return _is_one_block(batch.plans[workload.name]), buffer_bytes(problem, workload)

    for workload in sorted(named.values(), key=cost):
        launches = tuple(launch.kernel for launch in batch.plans[workload.name].launches)
        ways.setdefault((batch.cubins.get(workload.name), launches), workload)
    return tuple(ways.values())


def timed_alone(batch: CaseBatch) -> tuple[str, ...]:
    """Return the workloads to be timed whose list of kernels no simulated workload launches."""
    launched: dict[bool, dict[str, tuple[str, ...]]] = {True: {}, False: {}}
    for case in batch.cases:
        kernels = tuple(one.kernel for one in batch.plans[case.workload.name].launches)
        launched[case.workload.use == "time"][case.workload.name] = kernels
    seen = set(launched[False].values())
    return tuple(name for name, kernels in launched[True].items() if kernels not in seen)


def _is_one_block(plan: LaunchPlan) -> bool:
    """Return whether no block has another one to race with."""
    return all(prod(launch.grid) == 1 for launch in plan.launches)


def _refused(result: BatchResult, refused: BatchResult, device: Device) -> BatchResult:
    """Return the GPU's result with what the simulator found."""
    note = Diagnostic(
        severity="note",
        message=f"found on the simulator; every output on {device.name} was right, as it may be"
        " until threads run in another order",
    )
    return replace(
        result,
        status=refused.status,
        hidden_shapes=refused.hidden_shapes or result.hidden_shapes,
        mismatch=refused.mismatch,
        diagnostics=(*refused.diagnostics, note),
    )
