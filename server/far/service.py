"""Serves a device of this machine to the caller at the other end of stdin and stdout.

The process ends with its caller: when stdin closes, or when nothing has come for a while, as after
a network that went away. Candidates run in this machine's own sandbox.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO, Protocol, TypeVar

from kopt.config.errors import KoptError
from kopt.config.home_use import using_home
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings, settings_from_environment
from kopt.tools.devices.device import Arrays, Device
from kopt.tools.devices.gpu_time import metered_gpu_time
from kopt.tools.remote.answers import FAR_ANSWER, FarAnswer, GpuTimeAnswer, ToldAnswer
from kopt.tools.remote.calls import CALL, Beat, Call
from kopt.tools.remote.wire import BrokenFrame, FrameReader, FrameWriter

from .desk import Answered, Desk, FarLane, Helpers, OpenHere
from .raised import error_answer

SILENCE_S = 90.0
"""After this long without a word the caller is gone; it sends one every 15 s."""
SESSION_SILENCE_S = 120.0
"""A timing session holds the GPU; whose caller asks nothing for so long has lost it."""
_CLOSE_S = 10.0
"""Longest time that the device gets to end its processes before this one ends anyway."""
MOST_LANES = 256
"""Threads of one caller: it cannot take all that this process may have."""
_Work = SimpleQueue[tuple[Call, Arrays] | None]
_Lane = TypeVar("_Lane", bound=FarLane)


class ServedDesk(Protocol[_Lane]):
    """What answers the calls of one caller, such as `desk.Desk`."""

    def new_lane(self) -> _Lane:
        """Return what one thread of the caller has open: nothing yet."""
        ...

    def answer(self, call: Call, arrays: Arrays, lane: _Lane) -> Answered:
        """Return the answer to a call, with its arrays."""
        ...

    def close(self) -> None:
        """End what works for the caller."""
        ...


def main(source: BinaryIO, target: BinaryIO, home: str) -> None:
    """Serve until the caller hangs up, then end this process and all that it started.

    Args:
        source: Frames of calls.
        target: Takes frames of answers.
        home: The folder of state, caches and code.
    """
    settings = replace(settings_from_environment(), home=Path(home))
    stop = PollableEvent()
    heard = _Hearing()
    threading.Thread(target=heard.end_in_silence, name="silence", daemon=True).start()
    try:
        with using_home(settings.home):
            open_here = opener(settings, stop)
            # With each part: a frame may take minutes on a slow line.
            reader, writer = FrameReader(source, heard=heard.now), FrameWriter(target)
            serve(reader, writer, lambda told: Desk(open_here, settings, told))
    except KoptError as error:
        _send(FrameWriter(target), 0, error_answer(error))
    finally:
        stop.set()
        os._exit(0)  # threads that are still at work have nobody to work for


def serve(
    reader: FrameReader,
    writer: FrameWriter,
    make_desk: Callable[[Callable[[str], None]], ServedDesk[_Lane]],
    most_lanes: int = MOST_LANES,
) -> None:
    """Answer calls until the caller hangs up, then close the device.

    Args:
        reader: Reads frames of calls.
        writer: Sends frames of answers.
        make_desk: Makes what answers, given what passes lines of progress to the caller.
        most_lanes: Threads that the caller may have; with more it is hung up on.
    """
    desk = make_desk(lambda line: _send(writer, 0, ToldAnswer(line=line)))
    lanes: dict[int, _Work] = {}
    try:
        while (frame := reader.read()) is not None:
            call = CALL.validate_json(frame.message)
            if isinstance(call, Beat):
                continue
            if frame.lane not in lanes:
                if len(lanes) == most_lanes:
                    raise BrokenFrame(f"a caller of more than {most_lanes} threads")
                lanes[frame.lane] = SimpleQueue()
                arguments = (frame.lane, lanes[frame.lane], desk, writer)
                threading.Thread(target=_lane, args=arguments, daemon=True).start()
            if lanes[frame.lane].qsize():
                raise BrokenFrame("a caller that asks on, and does not wait for answers")
            lanes[frame.lane].put((call, frame.arrays))
    except BrokenFrame as error:
        print(f"kopt: {error}", file=sys.stderr)
    finally:
        closing = threading.Thread(target=desk.close, name="closing", daemon=True)
        closing.start()
        closing.join(_CLOSE_S)
        for work in lanes.values():
            work.put(None)


def _lane(number: int, works: _Work, desk: ServedDesk[_Lane], writer: FrameWriter) -> None:
    """Answer the calls of one thread of the caller."""
    lane = desk.new_lane()
    while (work := _next_work(works, lane)) is not None:
        call, arrays = work
        outputs: Arrays = {}
        answer: FarAnswer
        with metered_gpu_time() as meter:
            try:
                answer, outputs = desk.answer(call, arrays, lane)
            except Exception as error:  # the outermost frame of a call: the caller reports a bug
                answer = error_answer(error)
        if meter.seconds:
            _send(writer, number, GpuTimeAnswer(seconds=meter.seconds))
        _send(writer, number, answer, outputs)
    with suppress(Exception):  # the caller is gone, and the device is closed
        lane.stack.close()


def _next_work(works: _Work, lane: FarLane) -> tuple[Call, Arrays] | None:
    """Return what a thread of the caller asks next, and end its session if it asks nothing."""
    if lane.session is not None:
        try:
            return works.get(timeout=SESSION_SILENCE_S)
        except Empty:
            lane.session = None
            lane.stack.close()
    return works.get()


def _send(writer: FrameWriter, lane: int, answer: FarAnswer, arrays: Arrays | None = None) -> None:
    """Send an answer; a caller that is gone is seen where its calls are read."""
    with suppress(OSError):
        writer.write(lane, FAR_ANSWER.dump_json(answer), arrays)


class _Hearing:
    """When the caller was heard last."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def now(self) -> None:
        self._last = time.monotonic()

    def end_in_silence(self) -> None:
        """End this process once nothing has come for `SILENCE_S`."""
        while (left_s := self._last + SILENCE_S - time.monotonic()) > 0:
            time.sleep(left_s)
        os._exit(1)


def opener(settings: Settings, stop: PollableEvent) -> OpenHere:
    """Return what opens this machine's own devices; `stop` ends what the simulator runs."""

    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        if name == "sim":
            from kopt.tools.sim.device import SimDevice

            return SimDevice(settings, stop=stop, progress=told)
        from kopt.tools.gpu.open_gpu import open_gpu

        return open_gpu(name, settings, told, has_spare=has_spare, helpers=helpers)

    return open_here
