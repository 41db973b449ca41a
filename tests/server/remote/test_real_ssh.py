"""A device behind a real ssh and a real sshd of this machine."""

import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.settings import settings_from_environment
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from kopt.server.jobs.process_tree import ProcessKey, session_tree
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.remote import reconnecting
from support.command_line import Kopt
from support.real_sshd import RealSshd, missing_program, start_sshd
from support.shared_caches import share_caches
from support.stdio_process import wait_until_gone
from support.tiny_problem import write_tiny_problem

_MISSING = missing_program()
pytestmark = [
    pytest.mark.slow,  # each connection starts a Python that loads kopt
    # A real sshd cannot be had from PyPI; .ci/run installs it where it may.
    pytest.mark.skipif(_MISSING is not None, reason=f"{_MISSING} is missing: openssh-server"),
]
DEVICE = "ssh://box/sim"


@pytest.fixture
def sshd(
    tmp_path: Path, shared_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[RealSshd]:
    """Return a server, which `ssh box` of the test reaches."""
    far = share_caches(tmp_path / "far", shared_caches)
    server = start_sshd(tmp_path / "ssh", {"KOPT_HOME": str(far), "KOPT_JOBS": "2"})
    monkeypatch.setenv("PATH", f"{server.folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", sys.executable)
    monkeypatch.setattr(reconnecting, "PAUSES_S", (0.0, 0.0))
    yield server
    server.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a tiny problem of the user's own."""
    return write_tiny_problem(tmp_path)


def test_a_check_over_ssh_leaves_nothing_behind(kopt: Kopt, sshd: RealSshd, folder: Path) -> None:
    ending = kopt("check", folder / "reference.cu", "--device", DEVICE)
    assert ending.code == ExitCode.PASSED
    assert "sending kopt's code to box" in ending.stderr
    (code,) = (sshd.folder.parent / "far" / "remote" / "code").iterdir()
    assert (code / "kopt" / "server" / "far" / "service.py").is_file()
    wait_until_gone(_sessions(sshd))


def _sessions(sshd: RealSshd) -> frozenset[ProcessKey]:
    """Return the processes of all connections, and what they have started."""
    server = sshd.process.pid
    return frozenset(key for key in session_tree(server) if _is_below(key.pid, server))


def _is_below(pid: int, above: int) -> bool:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == above:
            return True
    return False


def test_a_killed_ssh_is_had_again_and_what_it_began_there_ends(
    sshd: RealSshd, folder: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(shared_home))
    settings = settings_from_environment()
    problem = load_problem(folder)
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"))
    shown: list[str] = []
    killed: list[int] = []

    def kill_once(line: str) -> None:
        if "3 of " in line and not killed:
            (ssh,) = _children("ssh")
            killed.append(ssh)
            os.kill(ssh, signal.SIGKILL)

    with open_device(DEVICE, settings, shown.append) as device:
        request = CheckRequest(case, "full", progress=kill_once)
        result = check_candidate(request, device, settings)
    assert result.status is Status.PASSED
    assert killed
    assert sum(line.startswith("the connection to box is lost") for line in shown) == 1
    wait_until_gone(_sessions(sshd))


def _children(name: str) -> list[int]:
    """Return the child processes of this one that run the program of this name."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    pids = [pid for task in tasks.iterdir() for pid in (task / "children").read_text().split()]
    return [int(pid) for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == name]


def test_a_host_that_ssh_does_not_know_is_refused_with_what_to_do(
    kopt: Kopt, sshd: RealSshd, folder: Path
) -> None:
    sshd.known_hosts.write_text("")
    ending = kopt("check", folder / "reference.cu", "--device", DEVICE)
    assert ending.code == ExitCode.MACHINE
    assert "box is not known to ssh yet: connect once by hand with `ssh box`" in ending.stderr


def test_a_key_that_is_refused_is_told_with_what_to_do(
    kopt: Kopt, sshd: RealSshd, folder: Path
) -> None:
    sshd.use_another_key()
    ending = kopt("doctor", "--device", DEVICE)
    assert ending.code == ExitCode.MACHINE
    words = " ".join(ending.stdout.split())
    assert "box refuses the key: `ssh box true` must work without a password" in words


def test_a_doctor_s_look_at_a_sound_machine(kopt: Kopt, sshd: RealSshd) -> None:
    ending = kopt("doctor", "--device", DEVICE, "--json")
    assert ending.code == ExitCode.PASSED
    found = {one["name"]: one["is_present"] for one in ending.document["findings"]}
    assert found == dict.fromkeys(found, True)
    assert {"ssh", "Python", "Python modules", "kopt's code", "sandbox"} <= found.keys()
    assert sshd.process.poll() is None
