"""A worker's engine that does what it is told instead of using a GPU.

`StartRequest.device_uuid` says what: a word of `ScriptedEngine._acts`, else it is answered with
that uuid. Executions give their inputs back as outputs.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kopt.config.errors import SetupError
from kopt.tools.devices.timer import Replays, SideFacts, TimingFacts
from kopt.tools.gpu.described_arrays import ArrayFile
from kopt.tools.gpu.messages import (
    Answer,
    CloseTimingRequest,
    CollectAnswer,
    CollectRequest,
    CopyCeilingAnswer,
    CopyCeilingRequest,
    Done,
    ExecuteAnswer,
    ExecuteRequest,
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
    WarmAnswer,
    WarmRequest,
)

ENGINE = "support.scripted_engine:ScriptedEngine"
BROKEN_ENGINE = "support.scripted_engine:BrokenEngine"


class ScriptedEngine:
    """Does the act that a request names."""

    def answer(self, request: Request, folder: Path) -> Answer:
        """Act on a start, give the inputs of an execution back, and answer without results."""
        assert not isinstance(request, GraphRunsRequest)
        match request:
            case StartRequest():
                return self._start(request)
            case StageRequest():
                return Done()
            case ExecuteRequest():
                assert (folder / request.inputs.file).is_file()
                return ExecuteAnswer(outputs=request.inputs)
            case OpenTimingRequest():
                sides = tuple(SideFacts(nodes_per_call=1.0) for _ in request.sides)
                facts = TimingFacts(sets=0, set_bytes=0, rotation_over_l2=0.0, sides=sides)
                return OpenTimingAnswer(facts=facts)
            case ReplayRequest():
                return ReplayAnswer(replays=Replays(us_per_call=()))
            case CollectRequest():
                return CollectAnswer(rotations=(), outputs=ArrayFile(file="none", entries=()))
            case WarmRequest():
                return WarmAnswer(us_per_call=float(request.side))
            case CloseTimingRequest():
                return Done()
            case CopyCeilingRequest():
                return CopyCeilingAnswer(gb_s=3000.0)

    def _start(self, request: StartRequest) -> StartAnswer:
        """Act, then answer with the request's own uuid."""
        act, _, argument = request.device_uuid.partition(" ")
        if act in self._acts:
            self._acts[act](argument)
        facts = OpenedGpu(index=0, uuid=request.device_uuid, sm_count=132, l2_bytes=50 << 20)
        return StartAnswer(facts=facts)

    def _spin(self, _: str) -> None:
        _hold_lifeline()
        while True:
            pass

    def _spin_with_child(self, _: str) -> None:
        if os.fork() == 0:
            self._spin("")
        signal.pause()

    def _exit(self, status: str) -> None:
        print("leaving", flush=True)
        os._exit(int(status))

    def _segfault(self, _: str) -> None:
        ctypes.string_at(0)

    def _flood(self, _: str) -> None:
        block = "x" * (1 << 16)
        for _turn in range(200):
            print(block, flush=True)
            print(block, file=sys.stderr, flush=True)

    def _raise(self, text: str) -> None:
        raise ValueError(text + "\nsecond line")

    def _refuse(self, text: str) -> None:
        raise SetupError(text)

    def _write_garbage(self, size: str) -> None:
        with open("answers", "wb", buffering=0) as answers:
            answers.write(b"\xff" * int(size))
        signal.pause()

    def _forge(self, _: str) -> None:
        """Send a well-formed answer under a token of its own."""
        payload = b'{"kind":"done"}'
        with open("answers", "wb", buffering=0) as answers:
            answers.write(bytes(16) + len(payload).to_bytes(4, "little") + payload)
        signal.pause()

    def _talk_nonsense(self, _: str) -> None:
        """Answer under the right token, but with no answer."""
        payload = b'{"kind":"riddle"}'
        frame = bytes.fromhex(sys.argv[3]) + len(payload).to_bytes(4, "little") + payload
        with open("answers", "wb", buffering=0) as answers:
            answers.write(frame)
        signal.pause()

    def _close(self, _: str) -> None:
        """Close the channel and live on."""
        os.closerange(3, 1000)
        _hold_lifeline()
        signal.pause()

    def _read(self, path: str) -> None:
        Path(path).read_bytes()

    def _write(self, path: str) -> None:
        Path(path).write_bytes(b"written by a worker")

    def _double(self, file: str) -> None:
        (2 * np.fromfile(file, np.float32)).tofile("doubled")

    def _run_program(self, program: str) -> None:
        subprocess.run([program, "--version"], check=True, capture_output=True)

    def _is_imported(self, module: str) -> None:
        assert module in sys.modules

    def _write_environment(self, file: str) -> None:
        Path(file).write_text(json.dumps(dict(os.environ)), "utf-8")

    def __init__(self) -> None:
        """List the acts."""
        self._acts: dict[str, Callable[[str], None]] = {
            "spin": self._spin,
            "spin-with-child": self._spin_with_child,
            "exit": self._exit,
            "segfault": self._segfault,
            "flood": self._flood,
            "raise": self._raise,
            "refuse": self._refuse,
            "garbage": self._write_garbage,
            "forge": self._forge,
            "nonsense": self._talk_nonsense,
            "close": self._close,
            "read": self._read,
            "write": self._write,
            "double": self._double,
            "run": self._run_program,
            "imported": self._is_imported,
            "environment": self._write_environment,
        }


class BrokenEngine:
    """Cannot be made."""

    def __init__(self) -> None:
        """Fail as a missing library does."""
        raise SetupError("this machine has no such library")


def _hold_lifeline() -> None:
    """Open the FIFO `alive`, if there is one, for as long as this process lives."""
    if Path("alive").exists():
        os.write(os.open("alive", os.O_WRONLY), b"+")
