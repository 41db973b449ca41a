"""An open timing session, from kopt's side: each call is one request to the worker.

It decides nothing about speed. Once a side has failed, every further call returns that failure
again; what the machine did wrong is raised.
"""

from collections.abc import Sequence
from typing import TypeVar

from kopt.config.errors import InfraError
from kopt.kernels.record import Record
from kopt.tools.devices.device import Arrays, ExecutionOutcome
from kopt.tools.devices.timer import (
    Replays,
    SetOutputs,
    TimingFacts,
    TimingFailure,
    TimingRequest,
)

from .array_file import MappedFile
from .described_arrays import ArrayFile
from .faults import damage_outcome, fault_outcome, owns_memory, timeout_outcome
from .messages import (
    CloseTimingRequest,
    CollectAnswer,
    CollectRequest,
    Done,
    FaultAnswer,
    OpenTimingAnswer,
    OpenTimingRequest,
    ReplayAnswer,
    ReplayRequest,
    Request,
    WarmAnswer,
    WarmRequest,
)
from .worker_process import WorkerEnd, WorkerProcess, ask_for

_CLOSE_S = 20.0
_Answer = TypeVar("_Answer", bound=Record)


class WorkerTimingSession:
    """Implements `tools.timer.TimingSession` over one worker."""

    def __init__(self, worker: WorkerProcess, request: TimingRequest, inputs: ArrayFile) -> None:
        """Open nothing yet; the request's inputs lie in the worker's folder."""
        self._worker = worker
        self._request = request
        self._inputs = inputs
        self._facts: TimingFacts | None = None
        self._failure: TimingFailure | None = None
        self._collected: MappedFile | None = None

    @property
    def facts(self) -> TimingFacts:
        """Layout, and what one call of each side is."""
        assert self._facts is not None  # handed out only once it is open
        return self._facts

    def open(self) -> TimingFailure | None:
        """Lay out, capture and warm up; None if all sides are ready.

        Raises:
            InfraError: The worker or the device failed.
        """
        request = self._request
        answer = self._ask(
            OpenTimingAnswer,
            OpenTimingRequest(
                problem=request.problem,
                workload=request.workload,
                sides=request.sides,
                inputs=self._inputs,
                poison=request.poison,
                layout_seed=request.layout_seed,
                warmup_calls=request.warmup_calls,
                draws=len(request.draws),
            ),
        )
        if isinstance(answer, TimingFailure):
            return answer
        self._facts = answer.facts
        return None

    def close(self) -> bool:
        """Free everything on the device; whether the worker may be used further."""
        self._release()
        if self._failure is not None:
            return False
        answer = self._worker.ask(CloseTimingRequest(), _CLOSE_S)
        return isinstance(answer, Done)

    def replay(self, sequence: Sequence[int]) -> Replays | TimingFailure:
        """Replay sides by their places, each preceded by an untimed restore and poison."""
        answer = self._ask(ReplayAnswer, ReplayRequest(sequence=tuple(sequence)))
        if isinstance(answer, TimingFailure):
            return answer
        if len(answer.replays.us_per_call) != len(sequence):
            raise InfraError(f"the GPU worker did not time each of {len(sequence)} replays")
        return answer.replays

    def collect(self, places: Sequence[int] | None = None) -> SetOutputs | TimingFailure:
        """Return the outputs of sets as the last replay left them, their guards checked.

        The arrays are read-only, and lie in the worker's file.
        """
        self._release()
        request = CollectRequest(places=None if places is None else tuple(places))
        answer = self._ask(CollectAnswer, request)
        if isinstance(answer, TimingFailure):
            return answer
        if answer.damage:
            return self._fail(None, damage_outcome(answer.damage, self._worker.level))
        sets = range(len(answer.rotations))
        tensors = [tensor for tensor in self._request.problem.tensors if tensor.role != "in"]
        self._collected = MappedFile(self._worker.folder, answer.outputs)
        arrays = self._collected.arrays(
            {f"{k}/{tensor.name}": tensor.dtype for k in sets for tensor in tensors}
        )
        outputs: list[Arrays] = [
            {tensor.name: arrays[f"{k}/{tensor.name}"] for tensor in tensors} for k in sets
        ]
        return SetOutputs(answer.rotations, tuple(outputs))

    def warm_us(self, side: int) -> float | TimingFailure:
        """Return the time of one call in microseconds over a single set, L2 warm."""
        answer = self._ask(WarmAnswer, WarmRequest(side=side), side)
        return answer if isinstance(answer, TimingFailure) else answer.us_per_call

    def _release(self) -> None:
        """Let the worker write over what was collected, unless an array of it is still in use."""
        if self._collected is not None:
            collected, self._collected = self._collected, None
            collected.release()

    def _ask(
        self, kind: type[_Answer], request: Request, side: int | None = None
    ) -> _Answer | TimingFailure:
        if self._failure is not None:
            return self._failure
        answer = ask_for(kind, self._worker, request, self._request.timeout_s)
        if isinstance(answer, WorkerEnd):
            if answer.reason == "died":
                raise InfraError(f"the GPU worker ended while it was timing: {answer.detail}")
            return self._fail(None, timeout_outcome(self._request.timeout_s, self._worker.level))
        if not isinstance(answer, FaultAnswer):
            return answer
        at = side if answer.side is None else answer.side
        sides = self._request.sides if at is None else (self._request.sides[at],)
        owner = any(
            owns_memory(one, self._request.problem, self._request.workload) for one in sides
        )
        return self._fail(at, fault_outcome(answer.fault, self._worker.level, owner))

    def _fail(self, side: int | None, outcome: ExecutionOutcome) -> TimingFailure:
        self._failure = TimingFailure(side, outcome)
        return self._failure
