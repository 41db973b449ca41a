"""A GPU's twin for whole commands: the simulator executes, a function says how long it took.

No library runs on it, so that the reference kernel is the baseline. Safe from several threads, like
a GPU: they take turns.
"""

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Diagnostic
from kopt.kernels.set_contents import distinct_contents, outputs_of_set
from kopt.kernels.status import Status
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import (
    CandidateSide,
    EmptySide,
    LibraryRun,
    LibrarySide,
    Replays,
    SetOutputs,
    Side,
    SideFacts,
    Telemetry,
    TimingFacts,
    TimingRequest,
)
from kopt.tools.sim.device import SimDevice

from .bench_results import H100

SETS = 8
TimeOf = Callable[[LaunchPlan], float]
"""Microseconds of one call of a plan."""


class SimTimer:
    """Implements `TimingDevice`."""

    def __init__(self, settings: Settings, time_of: TimeOf, facts: DeviceFacts = H100) -> None:
        """Execute with `settings` and let `time_of` say how long that took."""
        self._sim = SimDevice(settings)
        self._time_of = time_of
        self._turns = threading.RLock()
        self._outputs: dict[tuple[str, int], Arrays] = {}
        self.facts = facts

    @property
    def name(self) -> str:
        """`cuda:0`."""
        return f"cuda:{self.facts.index}"

    @property
    def gpu(self) -> GpuSpec:
        """The H100's data sheet."""
        return load_gpus()["H100"]

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Build the CPU program."""
        return self._sim.prepare(program)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Execute on the simulator and remember what came out."""
        with self._turns:
            outcome = self._sim.execute(request)
            if outcome.status is Status.PASSED:
                key = (str(request.program.cubin_path), request.poison)
                self._outputs[key] = outcome.outputs
            return outcome

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Have no library."""
        del run
        return ExecutionOutcome(Status.LAUNCH_ERROR, (Diagnostic(message="no library here"),))

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator["SimTimingSession"]:
        """Give a session; other threads wait."""
        with self._turns:
            yield SimTimingSession(request, self._time_of, self._outputs)

    def copy_ceiling_gb_s(self) -> float:
        """Return a planning value of the H100."""
        return 3000.0


class SimTimingSession:
    """Implements `TimingSession`: exact times, outputs of the last checked execution."""

    def __init__(
        self, request: TimingRequest, time_of: TimeOf, outputs: dict[tuple[str, int], Arrays]
    ) -> None:
        """Begin with the first side."""
        self._request = request
        self._time_of = time_of
        self._outputs = outputs
        self._last = 0

    @property
    def facts(self) -> TimingFacts:
        """Return sets that fill the L2 four times."""
        sides = tuple(SideFacts(nodes_per_call=1) for _ in self._request.sides)
        return TimingFacts(sets=SETS, set_bytes=1 << 20, rotation_over_l2=4.0, sides=sides)

    def replay(self, sequence: Sequence[int]) -> Replays:
        """Return what the function says."""
        self._last = sequence[-1]
        telemetry = Telemetry(sm_mhz=1980, memory_mhz=2619, temperature_c=40, other_processes=0)
        times = tuple(self._us(self._request.sides[place]) for place in sequence)
        return Replays(us_per_call=times, before=telemetry, after=telemetry)

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs:
        """Return the checked outputs, rows rotated."""
        request = self._request
        side = request.sides[self._last]
        assert isinstance(side, CandidateSide)
        checked = self._outputs[side.cubin_path, request.poison]
        axes = request.workload.axes
        assert request.problem.row_axis is not None  # the last execution stands for every draw
        contents = distinct_contents(request.problem, axes, 1)
        rotations = tuple(place % contents for place in places or range(SETS))
        outputs = tuple(outputs_of_set(request.problem, axes, [checked], k) for k in rotations)
        return SetOutputs(rotations, outputs)

    def warm_us(self, side: int) -> float:
        """Return nine tenths of the cold time."""
        return self._us(self._request.sides[side]) * 0.9

    def _us(self, side: Side) -> float:
        assert not isinstance(side, LibrarySide)
        return 1.11 if isinstance(side, EmptySide) else self._time_of(side.plan)
