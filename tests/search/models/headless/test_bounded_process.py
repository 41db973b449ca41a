"""A program run to its end: its output, its limits, and nothing of it left behind."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from kopt.search.models.errors import Halt, Stopped
from kopt.search.models.headless.bounded_process import (
    Ended,
    ProcessLimits,
    ProgramStart,
    run_bounded,
)


def run(script: str, folder: Path, text: str = "", limits: ProcessLimits | None = None) -> Ended:
    asked = ProgramStart((sys.executable, "-c", script), text, folder, os.environ)
    return run_bounded(asked, Halt(), limits or ProcessLimits(seconds=60.0))


def test_input_of_any_size_goes_in_and_output_comes_out(tmp_path: Path) -> None:
    script = (
        "import sys; text = sys.stdin.read(); print(len(text)); print('e' * 9, file=sys.stderr)"
    )
    ended = run(script, tmp_path, "x" * 3_000_000)
    assert (ended.code, ended.output, ended.cut) == (0, "3000000\n", "")
    assert ended.errors == "e" * 9 + "\n"


def test_program_that_reads_nothing_is_no_error(tmp_path: Path) -> None:
    ended = run("print('done'); raise SystemExit(3)", tmp_path, "x" * 3_000_000)
    assert (ended.code, ended.output) == (3, "done\n")


def test_program_that_closes_its_pipes_first_ends_by_itself(tmp_path: Path) -> None:
    script = (
        "import os\n"
        "for one in (0, 1, 2): os.close(one)\n"
        "sum(range(5_000_000)); os._exit(5)"  # some work, in which the closed pipes are seen
    )
    assert run(script, tmp_path).code == 5


def test_endless_output_ends_it(tmp_path: Path) -> None:
    limits = ProcessLimits(seconds=60.0, output_bytes=100_000)
    ended = run("while True: print('x' * 60000)", tmp_path, limits=limits)
    assert ended.cut == "output" and ended.code == -signal.SIGKILL


def test_endless_errors_are_kept_to_their_beginning(tmp_path: Path) -> None:
    ended = run("import sys; sys.stderr.write('e' * 5_000_000); print('done')", tmp_path)
    assert (ended.output, len(ended.errors)) == ("done\n", 65536)


def test_program_that_hangs_ends_at_its_limit(tmp_path: Path) -> None:
    limits = ProcessLimits(seconds=0.5)
    ended = run("import signal; signal.pause()", tmp_path, limits=limits)
    assert ended.cut == "time" and ended.code == -signal.SIGKILL


def test_stop_ends_the_program_and_its_children(tmp_path: Path) -> None:
    script = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "with open(sys.argv[1], 'w') as told: told.write(str(child.pid))\n"
        "signal.pause()"
    )
    told, halt = tmp_path / "told", Halt()
    os.mkfifo(told)
    asked = ProgramStart((sys.executable, "-c", script, str(told)), "", tmp_path, os.environ)
    descriptors: list[int] = []

    def stop() -> None:
        descriptors.append(os.pidfd_open(int(told.read_text("utf-8"))))
        halt.stop()

    watcher = threading.Thread(target=stop)
    watcher.start()
    with pytest.raises(Stopped):
        run_bounded(asked, halt, ProcessLimits(seconds=60.0))
    watcher.join()
    (child,) = descriptors
    _assert_ends(child)


def test_program_that_leaves_a_child_with_its_pipes_is_not_waited_for(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print('done')"
    )
    assert run(script, tmp_path).output == "done\n"


def test_missing_program_is_told(tmp_path: Path) -> None:
    asked = ProgramStart(("/no/such/program",), "", tmp_path / "no folder", os.environ)
    with pytest.raises(OSError, match="No such file"):
        run_bounded(asked, Halt(), ProcessLimits())


def _assert_ends(descriptor: int) -> None:
    import select

    with os.fdopen(descriptor) as process:
        assert select.select([process], [], [], 20.0)[0], "a child is left behind"
