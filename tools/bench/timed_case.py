"""What all sides of one benchmark share: the device, the workload, and the inputs of the timing.

The inputs come from a hidden seed, drawn after the build and for each measurement anew: no source
can know it. A side is verified on them, under both poisons, before
anything is timed.

After a sticky error between replays, or with damaged guard zones, any side of a session may be at
fault: each is then replayed in a session of its own, and the one that fails alone did it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.graph_runs import GraphRunner
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.set_contents import call_work, distinct_contents, draw_count, wanted_sets
from kopt.kernels.status import Status
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.cases import InputCase, Run
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.oracle_memory import affordable_jobs
from kopt.tools.check.run_case import JudgedRun, SharedCase, compare_poisons, execute_run
from kopt.tools.check.unwritten_gate import POISONS, other_poison
from kopt.tools.devices.device import Arrays, Device, Program
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import Side, Timer, TimingDevice, TimingFailure, TimingRequest

REGIME = "normal"
"""What production data looks like; the power that data costs depends on its bits."""


@dataclass(frozen=True)
class TimedCase:
    """One workload with the inputs that its sides are timed on."""

    problem: Problem
    workload: Workload
    input_seed: int
    """Hidden; in no result."""
    seed: int
    """Decides order, layout and poison."""
    device: TimingDevice
    settings: Settings
    progress: Callable[[str], None] = ignore
    """Called with a short line before what may take long."""
    _unseen: list[CaseData] = field(default_factory=list[CaseData], init=False, compare=False)
    """Made with the draws, where a call behind the timed ones will want it (later_call.py)."""

    @property
    def kernel(self) -> str:
        """Kernel id."""
        return self.problem.kernel_id(self.workload)

    @property
    def gpu(self) -> GpuSpec:
        """Limits and peaks of the device."""
        return self.device.gpu

    @cached_property
    def draws(self) -> tuple[CaseData, ...]:
        """Inputs and references of each draw, made when first asked for, once for all sides.

        Raises:
            ToolError: The problem's oracle is at fault.
        """
        count = draw_count(self.problem, self.workload, self.gpu.l2_bytes)
        seeds = [self.input_seed + number for number in range(count)]
        if distinct_contents(self.problem, self.workload.axes, count) < self._wanted_sets:
            seeds += draw_hidden_seeds(1)
        graphs = self.device if isinstance(self.device, GraphRunner) else None
        made = self._made(seeds, graphs)
        self._unseen.extend(made[count:])
        return tuple(made[:count])

    def unseen(self) -> CaseData:
        """Return inputs and references that this case gave out to nobody before.

        The GPU computes nothing for them: a timed call has just left its traces there.

        Raises:
            ToolError: The problem's oracle is at fault.
        """
        return self._unseen.pop() if self._unseen else self._made(draw_hidden_seeds(1))[0]

    @property
    def _wanted_sets(self) -> int:
        return wanted_sets(call_work(self.problem, self.workload.axes), self.gpu.l2_bytes)

    def _made(self, seeds: Sequence[int], graphs: GraphRunner | None = None) -> list[CaseData]:
        """Return the case of each seed, as many at once as the machine holds."""
        one = CaseKey(self.problem, self.workload, self.input_seed, REGIME)
        keys = [replace(one, seed=seed) for seed in seeds]
        jobs = affordable_jobs(self.problem, [self.workload], min(len(keys), self.settings.jobs))
        with thread_pool(jobs, "draws") as pool:
            return list(pool.map(partial(make_case_data, graphs=graphs), keys))

    def key(self, kind: str, **more: str) -> dict[str, str]:
        """Return what a record that is kept of this kernel on this device is kept under."""
        facts = self.device.facts
        own = {"device": facts.uuid, "driver": facts.driver_version, "kernel": self.kernel}
        return {"kind": kind, **own, **more}

    @property
    def poison(self) -> int:
        """Byte that fills outputs before each timed replay."""
        return POISONS[self.seed % len(POISONS)]


@dataclass(frozen=True)
class VerifiedDraw:
    """What a side computes on one draw of the timed inputs, as the oracle does."""

    data: CaseData
    outputs: Arrays
    """Outputs of one execution under the timing's poison: what timed calls must give, rotated."""


@dataclass(frozen=True)
class Verified:
    """A side that computes what the oracle does on the timed inputs."""

    draws: tuple[VerifiedDraw, ...]
    """One, whose rows rotate; several where the problem has no rows (kernels/set_contents.py)."""

    @property
    def data(self) -> CaseData:
        """Inputs and references of the first draw."""
        return self.draws[0].data


def verify(case: TimedCase, program: Program, device: Device) -> Verified | JudgedRun:
    """Execute `program` on each draw of the timed inputs, under both poisons, and judge it.

    `device` is the timing device, or what stands for a library's function on it. A run that
    faulted or was refused is returned as its report.
    """
    draws: list[VerifiedDraw] = []
    for number in range(draw_count(case.problem, case.workload, case.gpu.l2_bytes)):
        verified = _verify_draw(case, program, device, number)
        if isinstance(verified, JudgedRun):
            return verified
        draws.append(verified)
    return Verified(tuple(draws))


def _verify_draw(
    case: TimedCase, program: Program, device: Device, number: int
) -> VerifiedDraw | JudgedRun:
    runs = (Run(case.poison, 0), Run(other_poison(case.poison), 0))
    seed = case.input_seed + number
    checked = InputCase(case.workload, seed, hidden=True, regime=REGIME, runs=runs)
    shared = SharedCase(program, checked, lambda: case.draws[number])
    reports: list[JudgedRun] = []
    for run in runs:
        report = execute_run(shared, run, device)
        if report.status is not Status.PASSED:
            return report
        reports.append(report)
    unwritten = compare_poisons(shared, (runs[0], reports[0]), (runs[1], reports[1]))
    if unwritten is not None:
        return unwritten
    return VerifiedDraw(shared.data(), reports[0].outcome.outputs)


def timing_request(case: TimedCase, sides: tuple[Side, ...]) -> TimingRequest:
    """Return a session of `sides` over the timed inputs."""
    first, *more = (dict(one.inputs) for one in case.draws)
    return TimingRequest(
        problem=case.problem,
        workload=case.workload,
        sides=sides,
        inputs=first,
        poison=case.poison,
        layout_seed=case.seed,
        more_inputs=tuple(more),
    )


_REPLAYS = 50


def find_faulty(request: TimingRequest, failure: TimingFailure, timer: Timer) -> TimingFailure:
    """Return a failure whose side is known: `failure`, or that of the first side to fail alone.

    The session of `request`, which failed, is closed.

    Raises:
        InfraError: No side fails alone.
    """
    if failure.side is not None:
        return failure
    for place, side in enumerate(request.sides):
        alone = _replay_alone(replace(request, sides=(side,)), timer)
        if alone is not None:
            return TimingFailure(place, alone.outcome)
    diagnostics = failure.outcome.diagnostics
    said = f" ({diagnostics[0].message})" if diagnostics else ""
    raise InfraError(
        f"timing {request.problem.kernel_id(request.workload)} ended with "
        f"{failure.outcome.status}{said}, and no side fails alone; try again"
    )


@begun_again
def _replay_alone(request: TimingRequest, timer: Timer) -> TimingFailure | None:
    with timer.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return session
        replays = session.replay((0,) * _REPLAYS)
        if isinstance(replays, TimingFailure):
            return replays
        outputs = session.collect()
        return outputs if isinstance(outputs, TimingFailure) else None
