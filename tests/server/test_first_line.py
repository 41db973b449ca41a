"""Nobody looks at an empty terminal: the first line comes at once, long work says how far it is."""

import os
import re
import sys
from pathlib import Path

import pytest

from support.command_line import Kopt
from support.on_terminal import OnTerminal
from support.small_silu import KERNEL, write_small_silu

KOPT = Path(sys.executable).with_name("kopt")
COMMANDS = ("compile", "check", "bench", "verify", "export", "profile", "run", "step")


@pytest.fixture
def mine(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a sound kernel of a problem that takes no time."""
    del kopt
    problems = write_small_silu(tmp_path / "problems")
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    (source,) = problems.rglob("reference.cu")
    return source


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_heard_of_before_its_modules_are_read(
    kopt: Kopt, command: str, tmp_path: Path
) -> None:
    """Here they cannot be read at all."""
    del kopt
    unread = (
        "import kopt.server.lazy_group as lazy\n"
        "def late(name): raise OSError('not read yet')\n"
        "lazy.import_module = late\n"
        "from kopt.server.cli import main\n"
        f"main([{command!r}, 'x'])\n"
    )
    with OnTerminal([sys.executable, "-P", "-c", unread], os.environ) as terminal:
        terminal.ending()
    heard, _, rest = terminal.shown.partition(b"not read yet")
    assert f"kopt {command} ...".encode() in heard and rest


def test_line_is_wiped_before_the_command_writes(kopt: Kopt, mine: Path) -> None:
    command = (KOPT, "compile", mine, "--kernel", KERNEL)
    with OnTerminal(command, {**os.environ, "TERM": "dumb"}) as terminal:
        assert terminal.ending() == 0
    began = b"kopt compile ..."
    assert terminal.shown.startswith(began + b"\r" + b" " * len(began) + b"\r")


def test_program_that_reads_stderr_gets_no_such_line(kopt: Kopt, mine: Path) -> None:
    assert " ..." not in kopt("compile", mine, "--kernel", KERNEL).stderr


def test_full_check_says_which_case_of_how_many_it_is_at(kopt: Kopt, mine: Path) -> None:
    words = ("--kernel", KERNEL, "--device", "sim", "--level", "full")
    lines = kopt("check", mine, *words).stderr.splitlines()
    places = [re.match(r"(\d+) of (\d+): ", line) for line in lines]
    counted = [(int(one[1]), int(one[2])) for one in places if one]
    total = counted[0][1]
    assert counted == [(number, total) for number in range(1, total + 1)] and total > 3


def test_export_says_which_build_it_is_at(kopt: Kopt, mine: Path, tmp_path: Path) -> None:
    words = ("--kernel", KERNEL, "--arch", "sm_90a", "--as", "cuda", "-o", tmp_path / "out")
    lines = kopt("export", mine, *words).stderr.splitlines()
    assert any(line.startswith("compiling 1 of ") for line in lines)
    assert lines[-1] == "writing"
