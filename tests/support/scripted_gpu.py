"""A worker's engine that plays a GPU over the tiny problem, with the failures that a test asks for.

A side's cubin path (or the layout of a library side) ends in `<request> <act> [<argument>]`:
`execute fault CUDA_ERROR_ASSERT` fails when it is executed and is well behaved otherwise.
`ScriptedGpu` opens the device that it is told.
"""

import os
import secrets
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import EmptySide, LibrarySide, Replays, Side, SideFacts, TimingFacts
from kopt.tools.gpu.array_file import read_arrays, write_arrays
from kopt.tools.gpu.messages import (
    Answer,
    BufferDamage,
    CloseTimingRequest,
    CollectAnswer,
    CollectRequest,
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteAnswer,
    ExecuteRequest,
    Fault,
    FaultAnswer,
    GraphRunsRequest,
    OpenedGpu,
    OpenTimingAnswer,
    OpenTimingRequest,
    ReplayAnswer,
    ReplayRequest,
    Request,
    StageRequest,
    StartAnswer,
    StartRequest,
    Step,
    WarmAnswer,
    WarmRequest,
)

ENGINE = "support.scripted_gpu:ScriptedGpu"
STAGED = "staged"
"""A file in the worker's folder once an execution was staged."""
MISTAKEN_ENGINE = "support.scripted_gpu:MistakenGpu"
SETS = 2


class _Failure(NamedTuple):
    fault: Fault | None = None
    damage: tuple[BufferDamage, ...] = ()


class ScriptedGpu:
    """Doubles x."""

    def __init__(self) -> None:
        """Draw a number that tells this process from others; float32 holds it exactly."""
        self._identity = secrets.randbelow(1 << 24)
        self._copies = 0
        self._timing: OpenTimingRequest | None = None
        self._timed_inputs: Arrays = {}

    def answer(self, request: Request, folder: Path) -> Answer:
        """Do what the request asks."""
        assert not isinstance(request, GraphRunsRequest)
        match request:
            case StartRequest():
                return self.start(request)
            case StageRequest():
                return self.stage(request, folder)
            case ExecuteRequest():
                return self.execute(request, folder)
            case OpenTimingRequest():
                return self.open_timing(request, folder)
            case ReplayRequest():
                return self.replay(request)
            case CollectRequest():
                return self.collect(request, folder)
            case WarmRequest():
                return self.warm(request)
            case CloseTimingRequest():
                self._timing = None
                return Done()
            case CopyCeilingRequest():
                self._copies += 1  # another figure each time
                return CopyCeilingAnswer(gb_s=3000.0 + self._copies)

    def start(self, request: StartRequest) -> StartAnswer:
        """Open the device that the request names."""
        return _opened(request.device_uuid)

    def stage(self, request: StageRequest, folder: Path) -> Done | FaultAnswer:
        """Leave a file, or do what the side says."""
        failure = _play(request.execution.side, "stage")
        if failure.fault is not None:
            return FaultAnswer(fault=failure.fault)
        (folder / STAGED).touch()
        return Done()

    def execute(self, request: ExecuteRequest, folder: Path) -> ExecuteAnswer | FaultAnswer:
        """Double x, or do what the side says."""
        failure = _play(request.side, "execute")
        if failure.fault is not None:
            return FaultAnswer(fault=failure.fault)
        x = _read_inputs(request, folder)["x"]
        act = _act(request.side)
        out = 2 * x
        if act == "execute identity":
            out[:] = self._identity
        if act == "execute late-producer":
            out[:] = request.late_producer
        outputs = {} if act == "execute nothing" else {"out": out}
        return ExecuteAnswer(
            damage=failure.damage, outputs=write_arrays(folder, "outputs", outputs.items())
        )

    def open_timing(
        self, request: OpenTimingRequest, folder: Path
    ) -> OpenTimingAnswer | FaultAnswer:
        """Keep the inputs."""
        for place, side in enumerate(request.sides):
            failure = _play(side, "open")
            if failure.fault is not None:
                return FaultAnswer(fault=failure.fault, side=place)
        self._timing = request
        self._timed_inputs = _read_inputs(request, folder)
        sides = tuple(SideFacts(nodes_per_call=1.0) for _ in request.sides)
        return OpenTimingAnswer(
            facts=TimingFacts(sets=SETS, set_bytes=4096, rotation_over_l2=2.0, sides=sides)
        )

    def replay(self, request: ReplayRequest) -> ReplayAnswer | FaultAnswer:
        """Side n takes n + 1 microseconds."""
        assert self._timing is not None
        for side in request.sequence:
            failure = _play(self._timing.sides[side], "replay")
            if failure.fault is not None:
                return FaultAnswer(fault=failure.fault)
        times = tuple(side + 1.0 for side in request.sequence)
        return ReplayAnswer(replays=Replays(us_per_call=times))

    def collect(self, request: CollectRequest, folder: Path) -> CollectAnswer:
        """Give doubled x of each set, its rows rotated by the number of the set."""
        assert self._timing is not None
        damage = [d for side in self._timing.sides for d in _play(side, "collect").damage]
        out = 2 * self._timed_inputs["x"]
        places = tuple(range(SETS)) if request.places is None else request.places
        outputs = {f"{k}/out": np.roll(out, place, axis=0) for k, place in enumerate(places)}
        return CollectAnswer(
            rotations=places,
            outputs=write_arrays(folder, "collected", outputs.items()),
            damage=tuple(damage),
        )

    def warm(self, request: WarmRequest) -> WarmAnswer | FaultAnswer:
        """Half the time of a cold call."""
        assert self._timing is not None
        failure = _play(self._timing.sides[request.side], "warm")
        if failure.fault is not None:
            return FaultAnswer(fault=failure.fault)
        return WarmAnswer(us_per_call=(request.side + 1) / 2)


class MistakenGpu(ScriptedGpu):
    """Opens another device than it is told."""

    def start(self, request: StartRequest) -> StartAnswer:
        """Answer with the facts of some other device."""
        return _opened("GPU-other")


def _opened(uuid: str) -> StartAnswer:
    return StartAnswer(facts=OpenedGpu(index=0, uuid=uuid, sm_count=132, l2_bytes=50 << 20))


def _act(side: Side) -> str:
    if isinstance(side, LibrarySide):
        return side.baseline.layout
    return "" if isinstance(side, EmptySide) else Path(side.cubin_path).name


def _play(side: Side, request: str) -> _Failure:
    """Do what `side` says about this request."""
    words = _act(side).split(" ")
    if words[0] != request:
        return _Failure()
    act, argument = words[1], " ".join(words[2:])
    if act == "spin":
        while True:
            pass
    if act == "exit":
        os._exit(3)
    if act == "raise":
        raise ValueError(argument)
    if act == "fault":
        sticky = argument == "CUDA_ERROR_ILLEGAL_ADDRESS"
        during: Step = "load" if argument == "CUDA_ERROR_NOT_FOUND" else "launch"
        during = "library" if isinstance(side, LibrarySide) else during
        return _Failure(Fault(during=during, code=argument, message="said", sticky=sticky))
    if act == "damage":
        after = BufferDamage(buffer="out", where="after", first_byte=0, changed_bytes=1)
        inside = after.model_copy(update={"buffer": "x", "where": "inside"})
        return _Failure(damage=(inside if argument == "inside" else after,))
    return _Failure()


def _read_inputs(request: ExecuteRequest | OpenTimingRequest, folder: Path) -> Arrays:
    dtypes = {tensor.name: tensor.dtype for tensor in request.problem.tensors}
    return read_arrays(folder, request.inputs, dtypes)
