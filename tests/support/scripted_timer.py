"""A timing device without a GPU: right outputs from the oracle, times from a script.

The offline twin of a GPU worker. Every behavior that the benchmark must cope with (drift, outliers,
throttling, faults, silent libraries, wrong timed outputs) is a field of `Script`.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from kopt.config.gpu_specs import GpuSpec, load_gpus
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
    TimingFailure,
    TimingRequest,
    TimingSession,
)

from .bench_results import H100
from .synthetic_check import (
    CANDIDATE,
    NumpyDevice,
    Spoil,
    case_of,
    leave_right,
    right_outputs,
)

FACTS = H100.model_copy(update={"uuid": "GPU-scripted"})
SETS = 8
"""Buffer sets, unless a script has others."""


@dataclass(frozen=True)
class Noise:
    """What disturbs times, as shares of a time."""

    white: float = 0.005
    drift: float = 0.02
    """Gained over the first 2,000 replays."""
    walk: float = 0.01
    """Standard deviation of the random walk after 200 replays."""
    outliers: float = 0.02
    """Share of replays that take up to 50 % longer."""
    order: float = 0.0
    """What the second of two replays takes more than the first."""


QUIET = Noise(white=0.0, drift=0.0, walk=0.0, outliers=0.0)


@dataclass(frozen=True)
class LibraryScript:
    """One path of a library."""

    us: float = 4.0
    status: Status = Status.PASSED
    message: str = "scripted"
    spoil: Spoil = leave_right
    allocations: int = 0
    fails_timed: Status | None = None


@dataclass
class Script:
    """How the device behaves."""

    candidate_us: float = 4.0
    candidate_alone_us: float | None = None
    """In sessions of its own; None: as beside others."""
    reference_us: float = 5.0
    empty_us: float = 1.1
    libraries: dict[tuple[str, bool], LibraryScript] = field(
        default_factory=dict[tuple[str, bool], LibraryScript]
    )
    noise: Noise = field(default_factory=Noise)
    seed: int = 0
    spoil: Spoil = leave_right
    """Of checked executions of the candidate."""
    spoil_reference: Spoil = leave_right
    spoil_timed: Callable[[int, Arrays], None] = lambda place, outputs: None
    """Of timed calls of the candidate, by place of the set; outputs are of that set's rows."""
    telemetry: Callable[[int], Telemetry] = lambda block: Telemetry(sm_mhz=1980, memory_mhz=2619)
    """By count of replay sequences; what `after` says."""
    candidate_fails_at: int | None = None
    """Count of replays after which the candidate faults."""
    names_side: bool = True
    """Whether a failure says whose it is."""
    sets: int = SETS
    over_l2: float = 4.1


@dataclass
class ScriptedTimer:
    """Implements `TimingDevice`; remembers what it was asked."""

    script: Script = field(default_factory=Script)
    name: str = "cuda:0"
    sessions: list[TimingRequest] = field(default_factory=list[TimingRequest])
    replayed: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    """Sequences of all sessions."""
    collected_after: list[int] = field(default_factory=list[int])
    """Count of replay sequences at each collection, within its session."""
    collected_places: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    library_runs: list[LibraryRun] = field(default_factory=list[LibraryRun])
    executions: list[ExecutionRequest] = field(default_factory=list[ExecutionRequest])

    @property
    def gpu(self) -> GpuSpec:
        """The H100's data sheet."""
        return load_gpus()["H100"]

    @property
    def facts(self) -> DeviceFacts:
        """An H100."""
        return FACTS

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Have nothing to build."""
        del program
        return None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Return the oracle's outputs, spoiled as the script says."""
        self.executions.append(request)
        is_reference = request.program.candidate.name == "reference.cu"
        spoil = self.script.spoil_reference if is_reference else self.script.spoil
        return NumpyDevice(spoil).execute(request)

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Return the oracle's outputs over poison, or what the path's script says."""
        self.library_runs.append(run)
        script = self.script.libraries[run.side.baseline.name, run.side.pdl]
        if script.status is not Status.PASSED:
            return ExecutionOutcome(script.status, (Diagnostic(message=script.message),))
        request = _execution(run)
        return NumpyDevice(script.spoil).execute(request)

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator[TimingSession | TimingFailure]:
        """Give a session."""
        self.sessions.append(request)
        yield ScriptedSession(self, request)

    def copy_ceiling_gb_s(self) -> float:
        """Return a planning value of the H100."""
        return 3000.0


class ScriptedSession:
    """Implements `TimingSession` over a script."""

    def __init__(self, timer: ScriptedTimer, request: TimingRequest) -> None:
        """Start the times of this session anew."""
        self._timer = timer
        self._script = timer.script
        self._request = request
        self._rng = np.random.default_rng([self._script.seed, len(timer.sessions)])
        self._replays = 0
        self._sequences = 0
        self._walk = 0.0
        self._last: int | None = None
        self._failure: TimingFailure | None = None

    @property
    def facts(self) -> TimingFacts:
        """Return sets of 1 MiB and one kernel per call."""
        return TimingFacts(
            sets=self._script.sets,
            set_bytes=1 << 20,
            rotation_over_l2=self._script.over_l2,
            sides=tuple(self._side_facts(side) for side in self._request.sides),
        )

    def replay(self, sequence: Sequence[int]) -> Replays | TimingFailure:
        """Return times as the script draws them."""
        if self._failure is not None:
            return self._failure
        self._timer.replayed.append(tuple(sequence))
        times: list[float] = []
        for position, place in enumerate(sequence):
            side = self._request.sides[place]
            status = self._fault(side)
            if status is not None:
                outcome = ExecutionOutcome(status, (Diagnostic(message="scripted fault"),))
                known = place if self._script.names_side else None
                self._failure = TimingFailure(known, outcome)
                return self._failure
            times.append(self._us(side) * (1 + self._disturbance(position)))
            self._last = place
        before = Telemetry(sm_mhz=1980, memory_mhz=2619, temperature_c=40, other_processes=0)
        after = self._script.telemetry(self._sequences)
        self._sequences += 1
        return Replays(us_per_call=tuple(times), before=before, after=after)

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs | TimingFailure:
        """Return what the last replayed side wrote to sets."""
        if self._failure is not None:
            return self._failure
        assert self._last is not None
        self._timer.collected_after.append(self._sequences)
        request = self._request
        problem, axes = request.problem, request.workload.axes
        right = [
            right_outputs(problem, case_of(problem, inputs), request.poison)
            for inputs in request.draws
        ]
        contents = distinct_contents(problem, axes, len(right))
        order = np.random.default_rng(request.layout_seed).permutation(self._script.sets)
        rotations = tuple(int(place) % contents for place in order)
        outputs = [
            {
                name: array.copy()
                for name, array in outputs_of_set(problem, axes, right, rotation).items()
            }
            for rotation in rotations
        ]
        if self._is_candidate(request.sides[self._last]):
            for place, one in enumerate(outputs):
                self._script.spoil_timed(place, one)
        chosen = range(len(outputs)) if places is None else places
        self._timer.collected_places.append(tuple(chosen))
        return SetOutputs(
            tuple(rotations[place] for place in chosen), tuple(outputs[place] for place in chosen)
        )

    def warm_us(self, side: int) -> float | TimingFailure:
        """Return half of the cold time."""
        return self._failure or self._us(self._request.sides[side]) / 2

    def _fault(self, side: Side) -> Status | None:
        if isinstance(side, LibrarySide):
            return self._script.libraries[side.baseline.name, side.pdl].fails_timed
        limit = self._script.candidate_fails_at
        if self._is_candidate(side) and limit is not None and self._replays >= limit:
            return Status.OUT_OF_BOUNDS
        return None

    def _is_candidate(self, side: Side) -> bool:
        return isinstance(side, CandidateSide) and not side.cubin_path.endswith("reference.cu")

    def _us(self, side: Side) -> float:
        script = self._script
        if isinstance(side, EmptySide):
            return script.empty_us
        if isinstance(side, LibrarySide):
            return script.libraries[side.baseline.name, side.pdl].us
        if not self._is_candidate(side):
            return script.reference_us
        alone_us = script.candidate_alone_us if len(self._request.sides) == 1 else None
        return script.candidate_us if alone_us is None else alone_us

    def _disturbance(self, position: int) -> float:
        noise = self._script.noise
        self._walk += self._rng.normal() * noise.walk / np.sqrt(200)
        share = noise.drift * self._replays / 2000 + self._walk
        share += self._rng.normal() * noise.white + (position % 2) * noise.order
        if self._rng.random() < noise.outliers:
            share += self._rng.random() * 0.5
        self._replays += 1
        return float(share)

    def _side_facts(self, side: Side) -> SideFacts:
        if not isinstance(side, LibrarySide):
            return SideFacts(nodes_per_call=1.0, kernels=("k",), call_us=self._us(side))
        script = self._script.libraries[side.baseline.name, side.pdl]
        return SideFacts(
            nodes_per_call=1.0,
            kernels=("library_kernel",),
            library="scripted 1.0",
            allocations=script.allocations,
            call_us=self._us(side),
        )


def _execution(run: LibraryRun) -> ExecutionRequest:
    plan = LaunchPlan(workload=run.workload.name, axes=run.workload.axes, defines={}, launches=())
    return ExecutionRequest(
        Program(CANDIDATE, run.problem, plan), run.inputs, run.poison, timeout_s=run.timeout_s
    )
