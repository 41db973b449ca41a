"""Answers the calls of one caller with a device of this machine.

Each lane of calls is answered by one thread, so that a timing session holds the device for the
thread of the caller that opened it, and for no other.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Protocol

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.tools.devices.device import Arrays, Device, ExecutionRequest, Program
from kopt.tools.devices.timer import (
    CandidateSide,
    LibraryRun,
    LibrarySide,
    Side,
    TimingDevice,
    TimingFailure,
    TimingRequest,
    TimingSession,
    as_timer,
    replay_each,
)
from kopt.tools.gpu.draw_names import draw_name
from kopt.tools.remote.answers import (
    DoneAnswer,
    FarAnswer,
    FoundAnswer,
    NumberAnswer,
    OpenedAnswer,
    OutputsAnswer,
    PreparedAnswer,
    ReplaysAnswer,
    TimingAnswer,
    TimingFailedAnswer,
)
from kopt.tools.remote.calls import (
    Call,
    CloseTimingCall,
    CollectCall,
    CopyCeilingCall,
    CountersCall,
    DoctorCall,
    ExecuteCall,
    HasFolderCall,
    HelpersCall,
    LibraryCall,
    OpenCall,
    OpenTimingCall,
    PrepareCall,
    RenewCall,
    ReplayCall,
    SanitizeCall,
    StoreFolderCall,
    WarmCall,
)
from kopt.tools.remote.outcomes import answer_of
from kopt.tools.remote.sending import files_among
from kopt.tools.remote.sent_kernel import SentProgram

from .examined import counters_read, sanitized
from .needs import things_for
from .sent_files import SentFiles

Answered = tuple[FarAnswer, Arrays]
Helpers = Callable[[str], dict[str, str]]
"""The paths of kopt's own kernels for an architecture, by name."""


class OpenHere(Protocol):
    """Opens a device of this machine."""

    def __call__(
        self, name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        """Return the device called `sim` or `cuda:<index>`, with nothing started yet."""
        ...


class FarLane:
    """What one thread of the caller has open."""

    def __init__(self) -> None:
        """Nothing is open."""
        self.stack = ExitStack()
        self.session: TimingSession | TimingFailure | None = None


class Desk:
    """One device, once it is opened; safe from several threads, of one lane each."""

    def __init__(
        self, open_here: OpenHere, settings: Settings, told: Callable[[str], None]
    ) -> None:
        """Open nothing yet.

        Args:
            open_here: Opens the device that the caller names.
            settings: Of this machine; what the caller sends is kept below its home.
            told: Passes lines of progress to the caller.
        """
        self._open_here = open_here
        self._settings = settings
        self._files = SentFiles(settings)
        self._told = told
        self._device: Device | None = None
        self._helpers: dict[str, str] = {}

    def new_lane(self) -> FarLane:
        """Return a lane on which nothing is open."""
        return FarLane()

    def close(self) -> None:
        """End the device's processes; lanes that are still at work fail."""
        getattr(self._device, "close", dict)()

    def answer(self, call: Call, arrays: Arrays, lane: FarLane) -> Answered:
        """Return the answer to a call, with its arrays.

        Raises:
            KoptError: As the device does.
        """
        match call:
            case OpenCall():
                return self._open(call), {}
            case DoctorCall():
                return FoundAnswer(things=tuple(things_for(call.device, self._settings))), {}
            case HelpersCall() | HasFolderCall() | StoreFolderCall() | RenewCall():
                return self._noted(call, arrays), {}
            case ReplayCall() | CollectCall() | WarmCall() | CloseTimingCall():
                return _in_session(call, lane)
            case OpenTimingCall():
                return self._open_timing(call, arrays, lane)
            case _:
                return self._done(call, arrays)

    def _noted(
        self, call: HelpersCall | HasFolderCall | StoreFolderCall | RenewCall, arrays: Arrays
    ) -> DoneAnswer:
        """Keep files that the caller sends, say whether they are here, or end the workers."""
        match call:
            case RenewCall():
                getattr(self._device, "renew", dict)()  # a simulator has nothing to end
                return DoneAnswer()
            case HelpersCall():
                files = files_among(arrays)
                self._helpers = {name: str(self._files.cubin(files[name])) for name in files}
                return DoneAnswer()
            case HasFolderCall():
                return DoneAnswer(is_there=self._files.has_folder(call.digest))
            case StoreFolderCall():
                self._files.keep_folder(call.digest, files_among(arrays))
                return DoneAnswer()

    def _done(self, call: Call, arrays: Arrays) -> Answered:
        """Do what is one call of the device."""
        match call:
            case PrepareCall():
                failure = self._opened().prepare(self._program(call.program, arrays))
                answer = None if failure is None else answer_of(failure)
                return PreparedAnswer(failure=answer), {}
            case ExecuteCall():
                outcome = self._opened().execute(self._execution(call, arrays))
                return answer_of(outcome), outcome.outputs
            case LibraryCall():
                return self._library(call, arrays)
            case CopyCeilingCall():
                return NumberAnswer(value=self._timer().copy_ceiling_gb_s()), {}
            case CountersCall():
                return counters_read(call, arrays, self._timer().facts.uuid, self._settings)
            case SanitizeCall():
                return sanitized(call, arrays, self._timer().facts.uuid, self._settings)
            case _:
                raise ToolError(f"a call {call.kind} cannot be answered")

    def _open(self, call: OpenCall) -> OpenedAnswer:
        self._device = self._open_here(
            call.device,
            has_spare=call.has_spare,
            helpers=lambda _: self._helpers,
            told=self._told,
        )
        spec = self._device.gpu
        return OpenedAnswer(facts=None if spec is None else self._timer().facts, spec=spec)

    def _opened(self) -> Device:
        if self._device is None:
            raise ToolError("no device is open")
        return self._device

    def _timer(self) -> TimingDevice:
        timer = as_timer(self._opened())
        if timer is None:
            raise ToolError("the device that is open measures no time")
        return timer

    def _program(self, sent: SentProgram, arrays: Arrays) -> Program:
        cubin = files_among(arrays).get("cubin")
        return Program(
            Candidate(sent.source, sent.source_name),
            sent.problem.model_copy(update={"folder": self._files.folder(sent.folder)}),
            sent.plan,
            None if cubin is None else self._files.cubin(cubin),
            sent.arch,
        )

    def _execution(self, call: ExecuteCall, arrays: Arrays) -> ExecutionRequest:
        program = self._program(call.program, arrays)
        return ExecutionRequest(
            program,
            arrays,
            call.poison,
            call.schedule_seed,
            call.timeout_s,
            call.late_inputs,
            call.finds_leftovers,
        )

    def _library(self, call: LibraryCall, arrays: Arrays) -> Answered:
        asked = call.asked
        (side,) = asked.sides
        if not isinstance(side, LibrarySide):
            raise ToolError("the side to call is no library's")
        problem = asked.problem.model_copy(update={"folder": self._files.folder(asked.folder)})
        run = LibraryRun(problem, asked.workload, side, arrays, asked.poison, asked.timeout_s)
        outcome = self._timer().run_library(run)
        return answer_of(outcome), outcome.outputs

    def _open_timing(self, call: OpenTimingCall, arrays: Arrays, lane: FarLane) -> Answered:
        request = self._timing(call, files_among(arrays), arrays)
        session = lane.stack.enter_context(self._timer().open_timing(request))
        lane.session = session
        if isinstance(session, TimingFailure):
            return _failed(session), {}
        return TimingAnswer(facts=session.facts), {}

    def _timing(
        self, call: OpenTimingCall, files: Mapping[str, bytes], arrays: Arrays
    ) -> TimingRequest:
        asked = call.asked
        names = [tensor.name for tensor in asked.problem.tensors if tensor.role != "out"]
        first, *more = (
            {name: arrays[draw_name(draw, name)] for name in names} for draw in range(call.draws)
        )
        return TimingRequest(
            problem=asked.problem.model_copy(update={"folder": self._files.folder(asked.folder)}),
            workload=asked.workload,
            sides=tuple(self._side(side, files.get(str(k))) for k, side in enumerate(asked.sides)),
            inputs=first,
            poison=asked.poison,
            layout_seed=call.layout_seed,
            warmup_calls=call.warmup_calls,
            timeout_s=asked.timeout_s,
            more_inputs=tuple(more),
        )

    def _side(self, side: Side, cubin: bytes | None) -> Side:
        if not isinstance(side, CandidateSide) or cubin is None:
            return side
        return side.model_copy(update={"cubin_path": str(self._files.cubin(cubin))})


def _in_session(
    call: ReplayCall | CollectCall | WarmCall | CloseTimingCall, lane: FarLane
) -> Answered:
    session = lane.session
    if isinstance(call, CloseTimingCall):
        lane.session = None
        lane.stack.close()
        return DoneAnswer(), {}
    if session is None or isinstance(session, TimingFailure):
        raise ToolError("no timing session is open")
    match call:
        case ReplayCall():
            replays = replay_each(session, call.sequences)
            if isinstance(replays, TimingFailure):
                return _failed(replays), {}
            return ReplaysAnswer(replays=replays), {}
        case WarmCall():
            warm = session.warm_us(call.side)
            if isinstance(warm, TimingFailure):
                return _failed(warm), {}
            return NumberAnswer(value=warm), {}
        case CollectCall():
            collected = session.collect(call.places)
            if isinstance(collected, TimingFailure):
                return _failed(collected), {}
            named: Arrays = {
                f"{k}/{name}": array
                for k, outputs in enumerate(collected.outputs)
                for name, array in outputs.items()
            }
            return OutputsAnswer(rotations=collected.rotations), named


def _failed(failure: TimingFailure) -> TimingFailedAnswer:
    return TimingFailedAnswer(side=failure.side, outcome=answer_of(failure.outcome))
