"""Nothing that a confined program started survives its end, its time-out or the end of kopt."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import run_sandboxed
from support.sandbox_level import HANG_LIMIT_S, LEVELS, PYTHON, Level, open_level


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Level:
    return open_level(request.param, settings, tmp_path)


@pytest.fixture
def lifeline(level: Level) -> Iterator[int]:
    """A FIFO at work/alive: whoever opens it for writing is alive until it reads as ended."""
    os.mkfifo(level.work / "alive")
    descriptor = os.open(level.work / "alive", os.O_RDONLY | os.O_NONBLOCK)
    yield descriptor
    os.close(descriptor)


HOLD_LIFELINE = (
    "import os, signal\n"
    "def hold():\n"
    "    try: os.setsid()\n"
    "    except PermissionError: pass\n"
    "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    os.write(os.open('alive', os.O_WRONLY), b'+'); os.write(2, b'holding')\n"
    "    os.closerange(0, 3)\n"
)


def _read_lifeline(descriptor: int) -> bytes:
    """What comes next: `+` when somebody holds it, nothing once the last holder has ended."""
    assert select.select([descriptor], [], [], HANG_LIMIT_S)[0], "a descendant is still alive"
    return os.read(descriptor, 1)


def test_time_out_ends_grandchildren(level: Level, lifeline: int) -> None:
    code = HOLD_LIFELINE + (
        "if os.fork() == 0:\n    if os.fork() == 0: hold()\n    signal.pause()\nsignal.pause()"
    )
    run = level.run(code, replace(level.policy, wall_s=2.0))
    assert (run.timed_out, run.returncode) == (True, -signal.SIGKILL)
    assert run.stderr == b"holding"
    assert os.read(lifeline, 2) == b"+"
    assert os.read(lifeline, 1) == b""  # would raise BlockingIOError while a holder lives


def test_orphan_does_not_survive_the_program(level: Level, lifeline: int) -> None:
    code = HOLD_LIFELINE + (
        "ready, done = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    hold(); os.write(done, b'1'); os.close(done); signal.pause()\n"
        "os.read(ready, 1)"
    )
    run = level.run(code)
    assert (run.timed_out, run.returncode, run.stderr) == (False, 0, b"holding")
    assert os.read(lifeline, 2) == b"+"
    assert os.read(lifeline, 1) == b""  # would raise BlockingIOError while a holder lives


SPIN = HOLD_LIFELINE + "if os.fork() == 0:\n    hold()\nwhile True: pass"


def test_event_of_another_thread_ends_a_spinning_program_and_its_children(
    level: Level, lifeline: int
) -> None:
    stop = PollableEvent()
    policy = replace(level.policy, wall_s=3600.0)
    with ThreadPoolExecutor(1) as pool:
        command: list[str | Path] = [PYTHON, "-ISc", SPIN]
        running = pool.submit(run_sandboxed, command, policy, level.settings, stop)
        assert _read_lifeline(lifeline) == b"+"
        stop.set()
        run = running.result(HANG_LIMIT_S)
    assert (run.stopped, run.timed_out, run.returncode) == (True, False, -signal.SIGKILL)
    assert os.read(lifeline, 1) == b""  # would raise BlockingIOError while a holder lives


def test_event_that_is_set_before_the_start_ends_the_program_too(level: Level) -> None:
    stop = PollableEvent()
    stop.set()
    command: list[str | Path] = [PYTHON, "-ISc", "while True: pass"]
    assert run_sandboxed(command, level.policy, level.settings, stop).stopped


def test_event_that_is_never_set_changes_nothing(level: Level) -> None:
    command: list[str | Path] = [PYTHON, "-ISc", "print('done')"]
    run = run_sandboxed(command, level.policy, level.settings, PollableEvent())
    assert (run.stopped, run.returncode, run.stdout) == (False, 0, b"done\n")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_nothing_survives_the_end_of_kopt(level: Level, lifeline: int, end: signal.Signals) -> None:
    code = HOLD_LIFELINE + "if os.fork() == 0:\n    hold()\nos.write(1, b'1'); signal.pause()"
    script = (
        "from pathlib import Path; from kopt.config.settings import Settings\n"
        "from kopt.tools.sandbox.ladder import run_sandboxed\n"
        "from kopt.tools.sandbox.policy import SandboxPolicy\n"
        f"settings = Settings(Path({str(level.settings.home)!r}), sandbox={level.name!r})\n"
        f"policy = SandboxPolicy((Path({sys.base_prefix!r}),), (Path({str(level.work)!r}),))\n"
        f"run_sandboxed([{str(PYTHON)!r}, '-ISc', {code!r}], policy, settings)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) as kopt:
        assert _read_lifeline(lifeline) == b"+"
        kopt.send_signal(end)
        stderr = kopt.communicate(timeout=HANG_LIMIT_S)[1]
    assert kopt.returncode == -end
    assert (b"KeyboardInterrupt" in stderr) == (end == signal.SIGINT)
    assert _read_lifeline(lifeline) == b""
