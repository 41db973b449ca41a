"""Messages through the two FIFOs: whole, in time, or with the reason why not."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.pollable_event import PollableEvent
from kopt.tools.gpu.channel import (
    MESSAGE_LIMIT_BYTES,
    TOKEN_BYTES,
    Channel,
    ChannelClosed,
    ChannelGarbage,
    ChannelTimeout,
    open_parent_end,
    open_worker_end,
)

TOKEN = bytes(range(TOKEN_BYTES))
HANG_LIMIT_S = 20.0


@pytest.fixture
def dead() -> PollableEvent:
    return PollableEvent()


@pytest.fixture
def parent(tmp_path: Path, dead: PollableEvent) -> Iterator[Channel]:
    channel = open_parent_end(tmp_path, TOKEN, dead)
    yield channel
    channel.close()


@pytest.fixture
def worker(parent: Channel, tmp_path: Path) -> Iterator[Channel]:
    channel = open_worker_end(tmp_path, TOKEN)
    yield channel
    try:
        channel.close()
    except OSError:  # closed by the test
        return


def soon() -> float:
    return time.monotonic() + HANG_LIMIT_S


def past() -> float:
    return time.monotonic() - 1


def test_messages_arrive_whole_and_in_order(parent: Channel, worker: Channel) -> None:
    for payload in (b"first", b"", b"second"):
        parent.send(payload)
    assert [worker.receive() for _ in range(3)] == [b"first", b"", b"second"]


def test_message_larger_than_a_pipe_arrives_both_ways(parent: Channel, worker: Channel) -> None:
    payload = os.urandom(3_000_000)
    with ThreadPoolExecutor(1) as pool:
        echo = pool.submit(lambda: worker.send(worker.receive()))
        parent.send(payload, soon())
        assert parent.receive(soon()) == payload
        echo.result(HANG_LIMIT_S)


def test_answer_that_does_not_come_times_out(parent: Channel, worker: Channel) -> None:
    with pytest.raises(ChannelTimeout):
        parent.receive(past())


def test_answer_that_stops_in_the_middle_times_out(parent: Channel, worker: Channel) -> None:
    os.write(worker.sending, TOKEN + b"\x10\0\0\0half")
    with pytest.raises(ChannelTimeout):
        parent.receive(time.monotonic() + 0.05)


def test_request_that_nobody_reads_times_out(parent: Channel, worker: Channel) -> None:
    with pytest.raises(ChannelTimeout):
        parent.send(bytes(1 << 20), time.monotonic() + 0.05)


def test_worker_that_closes_is_noticed_without_a_deadline(parent: Channel, worker: Channel) -> None:
    worker.close()
    with pytest.raises(ChannelClosed):
        parent.receive()


def test_parent_that_closes_is_noticed_by_the_worker(tmp_path: Path, dead: PollableEvent) -> None:
    parent = open_parent_end(tmp_path, TOKEN, dead)
    worker = open_worker_end(tmp_path, TOKEN)
    parent.close()
    with pytest.raises(ChannelClosed):
        worker.receive()
    with pytest.raises(ChannelClosed):
        worker.send(b"to nobody")
    worker.close()


def test_death_ends_a_wait_although_the_fifo_stays_open(
    parent: Channel, worker: Channel, dead: PollableEvent
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(parent.receive)
        dead.set()
        with pytest.raises(ChannelClosed):
            waiting.result(HANG_LIMIT_S)


def test_last_words_are_read_after_death(
    parent: Channel, worker: Channel, dead: PollableEvent
) -> None:
    worker.send(b"last words")
    dead.set()
    assert parent.receive(soon()) == b"last words"


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(bytes(TOKEN_BYTES) + b"\x02\0\0\0{}", id="another token"),
        pytest.param(TOKEN + (MESSAGE_LIMIT_BYTES + 1).to_bytes(4, "little"), id="too long"),
        pytest.param(b"printed by a library " * 4, id="text"),
    ],
)
def test_what_is_no_frame_is_refused(parent: Channel, worker: Channel, frame: bytes) -> None:
    os.write(worker.sending, frame)
    with pytest.raises(ChannelGarbage):
        parent.receive(soon())
