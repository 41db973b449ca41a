"""The interface between the benchmark stage and what times kernels: a GPU worker, or a test double.

A timer replays sides (a candidate, a library's function, an empty kernel) over the same rotating
buffer sets and says how long each replay took. It decides nothing: order, number and meaning of
the replays are the benchmark's. It never sees expected outputs.

Source: shared buffer sets, CUDA graphs and restore between replays: docs/measurement.md.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, cast, runtime_checkable

from pydantic import Field

from kopt.config.device_names import is_simulated
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Baseline, Problem, Workload
from kopt.kernels.record import Record

from .device import Arrays, Device, ExecutionOutcome


class CandidateSide(Record):
    """A launch plan over a cubin: a candidate, or a problem's reference kernel."""

    kind: Literal["candidate"] = "candidate"
    plan: LaunchPlan
    """The final plan, as it is launched on the device."""
    cubin_path: str


class LibrarySide(Record):
    """A function of the problem's baseline.py, called on the worker's buffers."""

    kind: Literal["library"] = "library"
    baseline: Baseline
    pdl: bool


class EmptySide(Record):
    """Kernels without a body in the launch shapes of `plan`: the floor of a launch."""

    kind: Literal["empty"] = "empty"
    plan: LaunchPlan


Side = CandidateSide | LibrarySide | EmptySide


@dataclass(frozen=True)
class LibraryRun:
    """One checked execution of a library's function, as `ExecutionRequest` is of a candidate."""

    problem: Problem
    workload: Workload
    side: LibrarySide
    inputs: Arrays
    poison: int
    timeout_s: float = 300.0
    """First calls may build the library's kernels."""


@dataclass(frozen=True)
class TimingRequest:
    """The sides, the inputs and the layout of one timing session."""

    problem: Problem
    workload: Workload
    sides: tuple[Side, ...]
    inputs: Arrays
    """Inputs of the set with contents 0; others hold them with rows rotated: set_contents.py."""
    poison: int
    """Byte that fills outputs, scratch and gaps before each replay."""
    layout_seed: int
    """Decides the order of the sets in memory and the gaps between them."""
    warmup_calls: int = 500
    """Calls of each side, interleaved: 8 replays, then more up to so many calls or 0.25 s."""
    timeout_s: float = 60.0
    """For opening and for each replay sequence."""
    more_inputs: tuple[Arrays, ...] = ()
    """Further draws, where the problem has no rows: sets hold each in turn."""

    @property
    def draws(self) -> tuple[Arrays, ...]:
        """The inputs of every draw."""
        return (self.inputs, *self.more_inputs)


class SideFacts(Record):
    """One call of a side, as captured."""

    nodes_per_call: float
    """Graph nodes of one call: kernels, copies and fills."""
    kernels: tuple[str, ...] = ()
    """Names of the kernels of one call, in order, as the driver gives them."""
    library: str | None = None
    """Library and version, e.g. flashinfer 0.7.2.post1; None for kopt's own launches."""
    allocations: int = 0
    """Device allocations that one call makes; more than 0 is not like for like."""
    call_us: float = 0.0
    """About how long a call takes, from the warm-up; 0.0 where nobody measured it."""


class TimingFacts(Record):
    """The layout of the buffers, and each side as captured."""

    sets: int
    """R: buffer sets, and calls per replay."""
    set_bytes: int
    """Bytes of one set: every tensor of the call, weights and outputs included."""
    rotation_over_l2: float
    """sets * set_bytes / L2 size; below 2 a result is warm (measurement.md)."""
    sides: tuple[SideFacts, ...]


class Telemetry(Record):
    """The device's state at one moment, from NVML; None where NVML does not say."""

    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()
    """Active clock event reasons other than idle and application settings."""
    other_processes: int | None = None
    """Compute processes on the device beside this one."""


class Replays(Record):
    """One sequence of replays without host synchronisation in between."""

    us_per_call: tuple[float, ...]
    """Time of one call in each replay of the sequence: graph time / sets, by device events."""
    before: Telemetry = Field(default_factory=Telemetry)
    after: Telemetry = Field(default_factory=Telemetry)


@dataclass(frozen=True)
class SetOutputs:
    """The outputs that the last replay left."""

    rotations: tuple[int, ...]
    """The contents of each set (kernels/set_contents.py): rows by which it is rotated, or without
    rows its draw. In the order asked for: replay order, where all were."""
    outputs: tuple[Arrays, ...]
    """Every `out` and `inout` tensor of each set, storage shape and dtype."""


@dataclass(frozen=True)
class TimingFailure:
    """A side that could not be built or replayed; the session is over."""

    side: int | None
    """Place in `TimingRequest.sides`; None if unknown, as after a sticky error between replays."""
    outcome: ExecutionOutcome
    """Never PASSED."""


class TimingSession(Protocol):
    """Open buffers and graphs; after a `TimingFailure` every further call returns it again."""

    @property
    def facts(self) -> TimingFacts:
        """Layout, and what one call of each side is."""
        ...

    def replay(self, sequence: Sequence[int]) -> Replays | TimingFailure:
        """Replay sides by their places, each preceded by an untimed restore and poison."""
        ...

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs | TimingFailure:
        """Return the outputs of sets as the last replay left them, their guards checked.

        Args:
            places: Which, by their places in replay order; None: all.
        """
        ...

    def warm_us(self, side: int) -> float | TimingFailure:
        """Return the time of one call in microseconds over a single set, L2 warm."""
        ...


@runtime_checkable
class FarTimingSession(Protocol):
    """A session of another process, to which each call is a way."""

    def replay_each(
        self, sequences: Sequence[Sequence[int]]
    ) -> tuple[Replays, ...] | TimingFailure:
        """Replay sequences one after the other, as `replay` does each."""
        ...


def replay_each(
    session: TimingSession, sequences: Sequence[Sequence[int]]
) -> tuple[Replays, ...] | TimingFailure:
    """Return the times of several sequences, in one call to a session of another process."""
    if isinstance(session, FarTimingSession):
        return session.replay_each(sequences)
    found: list[Replays] = []
    for sequence in sequences:
        replays = session.replay(sequence)
        if isinstance(replays, TimingFailure):
            return replays
        found.append(replays)
    return tuple(found)


class Timer(Protocol):
    """Something that times; a `Device` as well, so that the same worker checks and times."""

    @property
    def facts(self) -> DeviceFacts:
        """The GPU."""
        ...

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Call a library's function once on poisoned buffers."""
        ...

    def open_timing(
        self, request: TimingRequest
    ) -> AbstractContextManager["TimingSession | TimingFailure"]:
        """Hold the device, lay out buffers, capture graphs and warm up; leaving frees all."""
        ...

    def copy_ceiling_gb_s(self) -> float:
        """Return the measured device copy bandwidth, 1e9 bytes/s, reads and writes counted."""
        ...


class TimingDevice(Device, Timer, Protocol):
    """A device that checks and times: one GPU worker, or its twin in tests."""

    @property
    def gpu(self) -> GpuSpec:
        """Its limits and peaks."""
        ...


def as_timer(device: Device) -> TimingDevice | None:
    """Return a device as what times, since every GPU does; None for a simulator."""
    return None if is_simulated(device.name) else cast("TimingDevice", device)
