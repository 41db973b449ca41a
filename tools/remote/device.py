"""A device of another machine as kopt sees it: what a device here does, done there.

The other machine runs the same code over its own devices, so that what a GPU is held by, how its
workers are replaced and what counts as a fault is decided in one place. What comes back is judged
here; no expected output leaves this machine.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from typing import TypeVar

from kopt.config.device_names import simulator_for
from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.check_result import SanitizerTool
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.record import Record
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.examination import CounterReading, ExaminedCall, SanitizerReading
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.devices.timer import (
    LibraryRun,
    Replays,
    SetOutputs,
    TimingFacts,
    TimingFailure,
    TimingRequest,
    TimingSession,
)
from kopt.tools.gpu.draw_names import named_draws

from .answers import (
    CountersAnswer,
    FarAnswer,
    NumberAnswer,
    OpenedAnswer,
    OutcomeAnswer,
    OutputsAnswer,
    PreparedAnswer,
    ReplaysAnswer,
    SanitizerAnswer,
    TimingAnswer,
    TimingFailedAnswer,
)
from .calls import (
    Call,
    CloseTimingCall,
    CollectCall,
    CopyCeilingCall,
    CountersCall,
    ExecuteCall,
    LibraryCall,
    OpenTimingCall,
    PrepareCall,
    ReplayCall,
    SanitizeCall,
    WarmCall,
)
from .outcomes import outcome_of, refuse_other_outputs
from .reconnecting import Uplink
from .sending import KernelSender, file_arrays, files_among
from .sent_kernel import SentShot

_Answer = TypeVar("_Answer", bound=Record)


class RemoteDevice:
    """Implements `tools.device.Device`: the simulator of another machine."""

    def __init__(self, uplink: Uplink) -> None:
        """Take over an uplink whose device is open (`open_remote`)."""
        self._uplink = uplink
        self._sender = KernelSender(uplink.ask)
        self._gpu: GpuSpec | None = None

    @property
    def name(self) -> str:
        """It is called as the simulator here, since it counts and checks as that does."""
        return simulator_for(self._gpu)

    @property
    def gpu(self) -> GpuSpec | None:
        """The GPU that it stands for; None: the architecture's."""
        return self._gpu

    def standing_for(self, gpu: GpuSpec) -> "RemoteDevice":
        """Return this simulator for another GPU: plans and estimates are made here."""
        other = copy(self)
        other._gpu = gpu
        return other

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        """Build what execution needs there; None if that went well."""
        sent, files = self._sender.program(program)
        answer, _ = self._ask(PreparedAnswer, PrepareCall(program=sent), files)
        return None if answer.failure is None else outcome_of(answer.failure)

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Run the plan once there.

        Raises:
            SetupError: The machine lacks what that needs.
            InfraError: The machine or the connection failed, not the candidate.
        """
        sent, files = self._sender.program(request.program)
        call = ExecuteCall(
            program=sent,
            poison=request.poison,
            schedule_seed=request.schedule_seed,
            timeout_s=request.timeout_s,
            late_inputs=request.late_inputs,
            finds_leftovers=request.finds_leftovers,
        )
        answer, outputs = self._ask(OutcomeAnswer, call, {**request.inputs, **files})
        outcome = outcome_of(answer, outputs)
        refuse_other_outputs(request.program, outcome)
        return outcome

    def close(self) -> None:
        """Hang up; the other machine ends what it does for this device."""
        self._uplink.close()

    def _ask(
        self, kind: type[_Answer], call: Call, arrays: Arrays | None = None
    ) -> tuple[_Answer, Arrays]:
        answer, outputs = self._uplink.ask(call, arrays or {})
        return _expected(kind, answer), outputs


class RemoteGpu(RemoteDevice):
    """Implements `tools.timer.TimingDevice`: a GPU of another machine."""

    def __init__(self, uplink: Uplink, opened: OpenedAnswer) -> None:
        """Take over an uplink whose device is this GPU (`open_remote`)."""
        super().__init__(uplink)
        assert opened.facts is not None  # a GPU has both
        assert opened.spec is not None
        self._facts, self._spec = opened.facts, opened.spec
        self._copy_ceilings: dict[str, float] = {}
        """The bandwidth of each GPU, by its UUID: the process there measures it once, too."""

    @property
    def name(self) -> str:
        """`ssh://host/cuda:<index>`."""
        return self._uplink.name

    @property
    def gpu(self) -> GpuSpec:
        """Its limits and peaks."""
        return self._spec

    @property
    def facts(self) -> DeviceFacts:
        """The GPU and its driver."""
        return self._facts

    def run_library(self, run: LibraryRun) -> ExecutionOutcome:
        """Call a library's function once there."""
        kernel = (run.problem, run.workload)
        sent, files = self._sender.timing(kernel, (run.side,), run.poison, run.timeout_s)
        call = LibraryCall(asked=sent)
        answer, outputs = self._ask(OutcomeAnswer, call, {**run.inputs, **files})
        return outcome_of(answer, outputs)

    @contextmanager
    def open_timing(self, request: TimingRequest) -> Generator[TimingSession | TimingFailure]:
        """Hold the GPU there for a session; leaving lets it go.

        Raises:
            TimingLost: The connection was lost; also from the session's methods.
            SetupError: No worker can start there.
            InfraError: The worker or the GPU failed.
        """
        kernel = (request.problem, request.workload)
        sent, files = self._sender.timing(kernel, request.sides, request.poison, request.timeout_s)
        call = OpenTimingCall(
            asked=sent,
            layout_seed=request.layout_seed,
            warmup_calls=request.warmup_calls,
            draws=len(request.draws),
        )
        with self._uplink.session():
            answer, _ = self._uplink.ask(call, {**named_draws(request.draws), **files})
            try:
                if isinstance(answer, TimingFailedAnswer):
                    yield _failure(answer)
                else:
                    facts = _expected(TimingAnswer, answer).facts
                    yield RemoteTimingSession(self._uplink, facts)
            except TimingLost:
                raise
            except BaseException:
                with suppress(TimingLost):  # an interrupt has hung up
                    self._uplink.ask(CloseTimingCall())
                raise
            with suppress(TimingLost):  # what was timed is here
                self._uplink.ask(CloseTimingCall())

    def read_counters(self, call: ExaminedCall) -> CounterReading:
        """Return what Nsight Compute reads of one call there, or why there is nothing."""
        sent, arrays = _shot(call)
        answer, files = self._ask(CountersAnswer, CountersCall(shot=sent), arrays)
        return CounterReading(answer.counters, files_among(files))

    def sanitize(
        self, call: ExaminedCall, tools: tuple[SanitizerTool, ...], limit_s: float
    ) -> SanitizerReading:
        """Return what compute-sanitizer finds there, within `limit_s` for each tool."""
        sent, arrays = _shot(call)
        asked = SanitizeCall(shot=sent, tools=tools, limit_s=limit_s)
        answer, files = self._ask(SanitizerAnswer, asked, arrays)
        return SanitizerReading(answer.program, answer.runs, files_among(files))

    def copy_ceiling_gb_s(self) -> float:
        """Return the copy bandwidth measured there, 1e9 bytes/s; asked once of each GPU."""
        uuid = self.facts.uuid
        if uuid not in self._copy_ceilings:
            answer, _ = self._ask(NumberAnswer, CopyCeilingCall())
            self._copy_ceilings[uuid] = answer.value
        return self._copy_ceilings[uuid]


class RemoteTimingSession:
    """Implements `tools.timer.TimingSession`, and `FarTimingSession`, over the connection."""

    def __init__(self, uplink: Uplink, facts: TimingFacts) -> None:
        """Take over a session that is open there."""
        self._uplink = uplink
        self._facts = facts

    @property
    def facts(self) -> TimingFacts:
        """Layout, and what one call of each side is."""
        return self._facts

    def replay(self, sequence: Sequence[int]) -> Replays | TimingFailure:
        """Replay sides by their places."""
        found = self.replay_each((sequence,))
        return found if isinstance(found, TimingFailure) else found[0]

    def replay_each(
        self, sequences: Sequence[Sequence[int]]
    ) -> tuple[Replays, ...] | TimingFailure:
        """Replay sequences there, one after the other.

        Raises:
            InfraError: Not each of them was timed.
        """
        answer, _ = self._uplink.ask(ReplayCall(sequences=tuple(map(tuple, sequences))))
        if isinstance(answer, TimingFailedAnswer):
            return _failure(answer)
        replays = _expected(ReplaysAnswer, answer).replays
        if [len(one.us_per_call) for one in replays] != [len(one) for one in sequences]:
            raise InfraError("the other machine did not time each of the replays")
        return replays

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs | TimingFailure:
        """Return the outputs of sets as the last replay left them."""
        call = CollectCall(places=None if places is None else tuple(places))
        answer, arrays = self._uplink.ask(call)
        if isinstance(answer, TimingFailedAnswer):
            return _failure(answer)
        rotations = _expected(OutputsAnswer, answer).rotations
        outputs: dict[str, Arrays] = {str(place): {} for place in range(len(rotations))}
        for name, array in arrays.items():
            place, _, tensor = name.partition("/")
            if place not in outputs:
                raise InfraError(f"the other machine gave an output {name!r} of no set")
            outputs[place][tensor] = array
        return SetOutputs(rotations, tuple(outputs.values()))

    def warm_us(self, side: int) -> float | TimingFailure:
        """Return the time of one call in microseconds over a single set."""
        answer, _ = self._uplink.ask(WarmCall(side=side))
        if isinstance(answer, TimingFailedAnswer):
            return _failure(answer)
        return _expected(NumberAnswer, answer).value


def _shot(call: ExaminedCall) -> tuple[SentShot, Arrays]:
    sent = SentShot(problem=call.problem, workload=call.workload, plan=call.plan)
    return sent, {**call.inputs, **file_arrays({"cubin": call.cubin})}


def _failure(answer: TimingFailedAnswer) -> TimingFailure:
    return TimingFailure(answer.side, outcome_of(answer.outcome))


def _expected(kind: type[_Answer], answer: FarAnswer) -> _Answer:
    if not isinstance(answer, kind):
        raise InfraError(f"the other machine answered {answer.kind}, where {kind.__name__} fits")
    return answer
