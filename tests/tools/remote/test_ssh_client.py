"""What ssh says when it gets nowhere, as one line that says what to do; and how it is called."""

import shlex
from pathlib import Path

import pytest

from kopt.config.remote_address import RemoteAddress
from kopt.config.settings import Settings
from kopt.tools.remote.ssh_client import FarPython, install_command, too_old, why_refused

BOX_HOME = Path("/home/nobody/.kopt")
BOX = RemoteAddress("box", "cuda:0", "ada", 2222)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            "No ED25519 host key is known for box and you have requested strict checking.\n"
            "Host key verification failed.",
            "connect once by hand with `ssh -p 2222 ada@box`, compare the fingerprint",
        ),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
            "`ssh-keygen -R box`",
        ),
        (
            "ada@box: Permission denied (publickey,password).",
            "`ssh -p 2222 ada@box true` must work without a password",
        ),
        (
            "Received disconnect from box port 22:2: Too many authentication failures",
            "IdentitiesOnly",
        ),
        ("ssh: Could not resolve hostname box: Name or service not known", "there is no host box"),
        ("ssh: connect to host box port 2222: Connection refused", "is sshd running there"),
        ("ssh: connect to host box port 22: Connection timed out", "does not answer"),
        ("ssh: connect to host box port 22: No route to host", "cannot be reached from here"),
        ("kopt: no python3", "there is no python3 at ada@box:2222"),
        ("kopt: no /opt/python", "KOPT_REMOTE_PYTHON names it (kopt: no /opt/python)"),
        ("kex_exchange_identification: read: reset", "cannot be used over ssh: kex_exchange"),
        ("", "ssh ended with status 255"),
    ],
)
def test_a_refusal_is_one_line_with_what_to_do(said: str, advice: str) -> None:
    line = why_refused(BOX, said, 255)
    assert advice in line
    assert "\n" not in line


def _python(executable: str, version: str = "3.12.4") -> FarPython:
    return FarPython(version, executable, True, ("pynvml",), False, "/home/ada/.cache/kopt")


def test_missing_modules_go_into_an_environment_that_is_found_again() -> None:
    command = install_command(BOX, _python("/usr/bin/python3"), Settings(home=BOX_HOME))
    venv = "/home/ada/.cache/kopt/venv"
    assert command.startswith(
        f"ssh -p 2222 ada@box 'python3 -m venv {venv} && {venv}/bin/python -m pip install numpy "
    )
    assert '"cuda-bindings==13.*"' in command
    assert "nvidia-cuda-cccl" not in command


def test_an_environment_that_is_there_is_completed() -> None:
    venv = "/home/ada/.cache/kopt/venv/bin/python"
    there = install_command(BOX, _python(venv), Settings(home=BOX_HOME))
    assert there.startswith(f"ssh -p 2222 ada@box '{venv} -m pip install numpy ")
    named = Settings(home=BOX_HOME, remote_python="/opt/python3.13")
    sim = RemoteAddress("box", "sim")
    chosen = install_command(sim, _python("/opt/python3.13"), named)
    assert chosen.startswith("ssh box '/opt/python3.13 -m pip install numpy ")
    assert '"nvidia-cuda-cccl==13.2.*"' in chosen
    assert "cuda-bindings" not in chosen


def test_a_folder_there_runs_nothing_here() -> None:
    evil = "/home/ada/x'; touch ~/owned; '/$(id)"
    python = FarPython("3.12.4", "/usr/bin/python3", True, ("numpy",), False, evil)
    command = install_command(BOX, python, Settings(home=BOX_HOME))
    *ssh, there = shlex.split(command)
    assert ssh == ["ssh", "-p", "2222", "ada@box"]
    assert shlex.split(there)[:4] == ["python3", "-m", "venv", f"{evil}/venv"]


def test_an_old_python_is_told_with_its_version() -> None:
    line = too_old(_python("/usr/bin/python3", "3.8.10"))
    assert "Python 3.8.10 (/usr/bin/python3) is too old there, kopt needs 3.11" in line
