"""Machines that cannot evaluate: each is one line that says what to do next."""

import os
import sys
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from kopt.tools.remote import ssh_pipe
from kopt.tools.remote.bootstrap import MARK
from support.command_line import Kopt
from support.far_twin import far_python
from support.stand_in_ssh import StandInSsh
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # processes that play another machine

GPU, SIM = "ssh://ada@box:2222/cuda:0", "ssh://box/sim"


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """Return a candidate in the folder of its problem."""
    return write_tiny_problem(tmp_path) / "reference.cu"


def _far(folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """Have another Python on the other machine: a script of these lines."""
    program = folder / "far-python"
    program.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    program.chmod(0o755)
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", str(program))


def test_a_key_that_is_refused(kopt: Kopt, box: StandInSsh, reference: Path) -> None:
    box.plan(refusal="ada@box: Permission denied (publickey).")
    ending = kopt("check", reference, "--device", GPU)
    assert ending.code == ExitCode.MACHINE
    assert ending.stderr.splitlines()[-2:] == [
        f"kopt: {GPU}: ada@box:2222 refuses the key: `ssh -p 2222 ada@box true` must work without a"
        " password; ssh-copy-id brings your key there, ssh-add unlocks it (ada@box: Permission"
        " denied (publickey).)",
        f"'kopt doctor --device {GPU}' shows what that machine has.",
    ]
    (words,) = box.connections
    assert "-o BatchMode=yes" in words
    assert words.endswith("-p 2222 -l ada -- box")
    assert "\N{REPLACEMENT CHARACTER}" not in ending.stderr


def test_a_python_without_the_modules(
    kopt: Kopt,
    unvisited_box: StandInSsh,
    reference: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _far(tmp_path, monkeypatch, f'exec {sys.executable} -S "$@"')
    ending = kopt("check", reference, "--device", GPU)
    assert ending.code == ExitCode.MACHINE
    assert "no numpy, pydantic, yaml, ml_dtypes, elftools, cuda.bindings, pynvml there: ssh -p" in (
        ending.stderr
    )
    assert " -m pip install numpy pydantic pyyaml " in ending.stderr
    assert not (unvisited_box.far_home / "remote").exists()
    doctor = kopt("doctor", "--device", GPU, "--json")
    assert doctor.code == ExitCode.MACHINE
    states = [(one["name"], one["is_present"]) for one in doctor.document["findings"]]
    assert states == [("ssh", True), ("Python", True), ("Python modules", False)]


def test_no_python_at_all(
    kopt: Kopt, box: StandInSsh, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", "/nowhere/python3")
    ending = kopt("check", reference, "--device", SIM)
    assert ending.code == ExitCode.MACHINE
    assert "KOPT_REMOTE_PYTHON names it (kopt: no /nowhere/python3)" in ending.stderr
    assert box.connections


def test_a_shell_that_never_gets_to_kopt(
    kopt: Kopt, box: StandInSsh, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ssh_pipe, "GREETING_S", 0.3)
    _far(tmp_path, monkeypatch, "echo Welcome to box", "exec cat > /dev/null")
    ending = kopt("check", reference, "--device", SIM)
    assert ending.code == ExitCode.MACHINE
    assert "box cannot be used over ssh: nothing of kopt is heard within 0 s" in ending.stderr
    assert box.connections


def test_words_of_a_login_shell_are_passed_over(
    kopt: Kopt, box: StandInSsh, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _far(tmp_path, monkeypatch, "echo Welcome to box", f'exec {sys.executable} "$@"')
    assert kopt("check", reference, "--device", SIM).code == ExitCode.PASSED
    assert box.connections


def test_files_of_the_home_folder_there_are_not_imported(
    kopt: Kopt, box: StandInSsh, reference: Path
) -> None:
    for name in ("base64.py", "json.py", "numpy.py"):
        (box.folder / name).write_text("raise SystemExit(3)\n")
    assert kopt("check", reference, "--device", SIM).code == ExitCode.PASSED
    assert box.connections


def test_a_machine_without_a_gpu_says_so_itself(
    kopt: Kopt, box: StandInSsh, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_REMOTE_PYTHON", str(far_python(tmp_path, "none")))
    tests = str(Path(__file__).parents[2])
    box.python_path = os.pathsep.join(filter(None, (tests, os.environ.get("PYTHONPATH"))))
    box.plan()
    ending = kopt("check", reference, "--device", "ssh://box/cuda:97")
    assert ending.code == ExitCode.MACHINE
    assert "kopt: ssh://box/cuda:97: there is no " in ending.stderr  # driver, or GPU of this number
    assert "or use --device sim" not in ending.stderr


def test_a_service_that_ends_at_once_is_a_finding(
    kopt: Kopt, box: StandInSsh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = (
        '{"python": "3.12.4", "executable": "/usr/bin/python3", "is_new_enough": true,'
        ' "lacking": [], "has_code": true, "home": "/home/ada/.kopt"}'
    )
    _far(
        tmp_path,
        monkeypatch,
        f"echo '{MARK}{facts}'",
        f"echo '{MARK}{{\"ready\": true}}'",
        "echo 'Bus error' >&2",
    )
    doctor = kopt("doctor", "--device", SIM, "--json")
    assert doctor.code == ExitCode.MACHINE
    last = doctor.document["findings"][-1]
    assert (last["name"], last["is_present"]) == ("kopt's code", False)
    assert "box cannot be used over ssh: Bus error" in last["detail"]
    assert box.connections


def test_a_folder_that_cannot_be_written(
    kopt: Kopt, box: StandInSsh, reference: Path, tmp_path: Path
) -> None:
    box.far_home = tmp_path / "file"
    box.far_home.write_text("in the way")
    box.plan()
    ending = kopt("check", reference, "--device", SIM)
    assert ending.code == ExitCode.MACHINE
    assert f"kopt: {SIM}: cannot keep kopt's code in {tmp_path}/file: Not a directory" in (
        ending.stderr
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "--sanitize"), "examines an execution on a GPU, not on sim"),
        (("bench", "--all"), "needs a GPU: sim measures no time\n"),
        (("doctor", "--calibrate"), "a measurement needs a GPU: sim measures no time"),
    ],
    ids=["sanitize", "bench", "calibrate"],
)
def test_what_needs_a_gpu_says_that_a_simulator_was_asked_for(
    kopt: Kopt, box: StandInSsh, reference: Path, words: tuple[str, ...], said: str
) -> None:
    files = (reference,) if words[0] == "check" else ()
    ending = kopt(*words, *files, "--device", SIM)
    assert ending.code == (ExitCode.USAGE if files else ExitCode.MACHINE)
    assert said in ending.stderr
    assert box.connections


@pytest.mark.parametrize("device", ["ssh://", "ssh://box/gpu", "ssh://-oX/sim", "ssh:/box"])
def test_an_address_that_is_none(kopt: Kopt, reference: Path, device: str) -> None:
    ending = kopt("check", reference, "--device", device)
    assert ending.code == ExitCode.USAGE
    assert "ssh://" in ending.stderr
