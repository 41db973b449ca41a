"""The process between a server and its runner."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from kopt.server.jobs import guard
from kopt.server.jobs.process_tree import ProcessKey, living, session_tree

_SERVER = """
import os, subprocess, sys
command = [sys.executable, "-I", "-S", sys.argv[1], str(os.getpid()), *sys.argv[2:]]
process = subprocess.Popen(command, start_new_session=True, stdout=sys.stdout)
process.wait()
"""
_RUNNER_WITH_CHILD = """
import subprocess, sys
subprocess.Popen(["sleep", "60"])
print("started", flush=True)
sys.stdin.read()
"""
BOUND_S = 10.0


def wait_until_gone(processes: frozenset[ProcessKey]) -> None:
    deadline = time.monotonic() + BOUND_S
    while living(processes):
        assert time.monotonic() < deadline, "they live on"
        os.sched_yield()


def guarded(*command: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-I", "-S", guard.__file__, str(os.getpid()), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )


def test_a_killed_server_takes_runner_and_children_with_it() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, guard.__file__, sys.executable, "-c", _RUNNER_WITH_CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == "started\n"
        members = session_tree(server.pid)
        assert len(members) == 4  # server, guard, runner, and the runner's child
        server.kill()
        wait_until_gone(members)


def test_the_end_of_a_runner_is_told_and_leaves_no_child() -> None:
    with guarded(sys.executable, "-c", _RUNNER_WITH_CHILD) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == "started\n"
        members = session_tree(process.pid)
        (runner,) = (
            key.pid
            for key in members
            if b"import subprocess" in Path(f"/proc/{key.pid}/cmdline").read_bytes()
            and key.pid != process.pid
        )
        os.kill(runner, signal.SIGSEGV)
        assert process.stdout.readline() == "\n"
        told = json.loads(process.stdout.readline())
        process.wait(BOUND_S)  # the guard's own end comes last
        wait_until_gone(members)
    assert told == {"kind": "ended", "code": -signal.SIGSEGV}


def test_a_guard_whose_server_has_died_before_starts_nothing(tmp_path: Path) -> None:
    command = ["touch", str(tmp_path / "started")]
    with subprocess.Popen(["true"]) as dead:
        pass
    run = subprocess.run([sys.executable, "-I", "-S", guard.__file__, str(dead.pid), *command])
    assert run.returncode == 1
    assert not (tmp_path / "started").exists()
