"""The process that speaks to Ray, without Ray."""

import io
import json
import os
import threading
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from kopt.config.errors import SetupError
from kopt.config.ray_environment import pool_environment
from kopt.config.settings import Settings
from kopt.server.far.desk import FarLane
from kopt.server.far.service import MOST_LANES
from kopt.server.pool import relay
from kopt.tools.devices.device import Arrays
from kopt.tools.pool.relay_pipe import RelayPipe
from kopt.tools.remote.answers import FarAnswer, NumberAnswer
from kopt.tools.remote.calls import CALL, Call, WidthCall
from kopt.tools.remote.wire import FrameReader, FrameWriter

OPTIONS: dict[str, str | bool] = {
    "address": "ray://head:6379",
    "starts": False,
    "prefers": "",
    "fresh": False,
}


class _Desk:
    """Answers every call."""

    def __init__(self, cluster: object, prefers: str, told: object, *, is_fresh: bool) -> None:
        del cluster, prefers, told, is_fresh

    def new_lane(self) -> FarLane:
        return FarLane()

    def answer(self, call: Call, arrays: Arrays, lane: FarLane) -> tuple[FarAnswer, Arrays]:
        del call, lane
        return NumberAnswer(value=1), arrays

    def close(self) -> None:
        """Hold nothing."""


def test_a_run_may_have_more_threads_than_a_caller_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(relay, "Cluster", Mock())
    monkeypatch.setattr(relay, "PoolDesk", _Desk)
    asked, answered = io.BytesIO(), io.BytesIO()
    writer = FrameWriter(asked)
    for lane in range(1, MOST_LANES + 10):
        writer.write(lane, CALL.dump_json(WidthCall()))
    asked.seek(0)
    relay.main(asked, answered, OPTIONS)
    assert "threads" not in capsys.readouterr().err
    assert json.loads(answered.getvalue().splitlines()[0]) == {}


def test_arrays_go_whole_to_a_caller_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "Cluster", Mock())
    monkeypatch.setattr(relay, "PoolDesk", _Desk)
    array = np.zeros((64, 4096), np.uint8)
    asked, answered = io.BytesIO(), io.BytesIO()
    FrameWriter(asked, remembered_bytes=0).write(1, CALL.dump_json(WidthCall()), {"x": array})
    asked.seek(0)
    threads = set(threading.enumerate())
    relay.main(asked, answered, OPTIONS)
    for lane in set(threading.enumerate()) - threads:
        lane.join()
    answered.seek(0)
    answered.readline()
    frame = FrameReader(answered).read()
    assert frame is not None
    np.testing.assert_array_equal(frame.arrays["x"], array)
    assert answered.tell() > array.nbytes  # its rows, all alike, by digests would be few bytes


def test_what_a_bug_ends_it_with_is_told(tmp_path: Path) -> None:
    environment = pool_environment(Settings(home=tmp_path), os.environ)
    pipe = RelayPipe({"no": "address"}, environment)
    try:
        with pytest.raises(SetupError, match="speaks to Ray ended: KeyError: 'address'"):
            pipe.ready()
    finally:
        pipe.hang_up()
