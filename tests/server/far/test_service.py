"""What a caller's connection may ask of the process that serves it."""

import io
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.server.far import service
from kopt.server.far.desk import Desk, FarLane, Helpers
from kopt.tools.devices.device import Arrays, Device, ExecutionOutcome
from kopt.tools.devices.timer import TimingFailure
from kopt.tools.remote.answers import DoneAnswer, FarAnswer
from kopt.tools.remote.calls import CALL, Call, CopyCeilingCall, OpenCall
from kopt.tools.remote.wire import FrameReader, FrameWriter


def test_a_caller_of_more_threads_than_any_has_is_hung_up_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked, answered = io.BytesIO(), io.BytesIO()
    writer = FrameWriter(asked)
    for lane in range(1, service.MOST_LANES + 2):
        writer.write(lane, CALL.dump_json(CopyCeilingCall()))
    asked.seek(0)
    settings = Settings(home=tmp_path)
    opener = service.opener(settings, PollableEvent())
    service.serve(
        FrameReader(asked), FrameWriter(answered), lambda told: Desk(opener, settings, told)
    )
    assert f"more than {service.MOST_LANES} threads" in capsys.readouterr().err


class _HoldingDesk:
    """Opens a session at the first call, whatever it is."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def made(self, told: Callable[[str], None]) -> "_HoldingDesk":
        del told
        return self

    def new_lane(self) -> FarLane:
        return FarLane()

    def answer(self, call: Call, arrays: Arrays, lane: FarLane) -> tuple[FarAnswer, Arrays]:
        del call, arrays
        lane.session = TimingFailure(None, ExecutionOutcome(Status.PASSED))
        lane.stack.callback(self.let_go.set)
        return DoneAnswer(), {}

    def close(self) -> None:
        """Hold nothing but the session."""


def test_a_session_whose_caller_asks_nothing_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SESSION_SILENCE_S", 0.01)
    desk = _HoldingDesk()
    asks, asked = socket.socketpair()
    with asks, asked, asks.makefile("wb") as target, asked.makefile("rb") as source:
        answered = FrameWriter(io.BytesIO())
        arguments = (FrameReader(source), answered, desk.made)
        serving = threading.Thread(target=service.serve, args=arguments)
        serving.start()
        FrameWriter(target).write(1, CALL.dump_json(CopyCeilingCall()))
        assert desk.let_go.wait(60.0)  # and not the caller, which is still there
        asks.shutdown(socket.SHUT_RDWR)
        serving.join(60.0)


def test_a_caller_that_waits_for_no_answers_is_hung_up_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = threading.Event()

    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        del name, has_spare, helpers, told
        over.wait()
        raise SetupError("no device here")

    asked = io.BytesIO()
    writer = FrameWriter(asked)
    writer.write(1, CALL.dump_json(OpenCall(device="cuda:0", has_spare=False)))
    for _ in range(2):
        writer.write(1, CALL.dump_json(CopyCeilingCall()))
    asked.seek(0)
    answered, settings = FrameWriter(io.BytesIO()), Settings(home=tmp_path)
    service.serve(FrameReader(asked), answered, lambda told: Desk(open_here, settings, told))
    over.set()
    assert "does not wait for answers" in capsys.readouterr().err
