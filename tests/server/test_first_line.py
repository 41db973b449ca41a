"""Nobody looks at an empty terminal: the first line comes at once, long work says how far it is."""

import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.server.starting import LONG, announce
from support.command_line import Kopt
from support.on_terminal import OnTerminal
from support.quick_cases import first_quick
from support.small_silu import KERNEL, write_small_silu

KOPT = Path(sys.executable).with_name("kopt")
UNREAD = """
import kopt.server.lazy_group as lazy
def late(name): raise OSError('not read yet')
lazy.import_module = late
from kopt.server.cli import main
main()
"""
COMMANDS = ("compile", "check", "bench", "verify", "export", "profile", "run", "step")


@pytest.fixture
def mine(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a sound kernel of a problem that takes no time."""
    del kopt
    problems = write_small_silu(tmp_path / "problems")
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    (source,) = problems.rglob("reference.cu")
    return source


@pytest.mark.parametrize("command", first_quick(COMMANDS, 3))
def test_command_is_heard_of_before_its_modules_are_read(kopt: Kopt, command: str) -> None:
    """Here they cannot be read at all."""
    del kopt
    words = [sys.executable, "-P", "-c", UNREAD, command, "x"]
    with OnTerminal(words, os.environ) as terminal:
        terminal.ending()
    heard, _, rest = terminal.shown.partition(b"not read yet")
    assert f"kopt {command} ...".encode() in heard and rest


def test_line_is_wiped_before_the_command_writes(kopt: Kopt, mine: Path) -> None:
    command = (KOPT, "compile", mine, "--kernel", KERNEL)
    with OnTerminal(command, {**os.environ, "TERM": "dumb"}) as terminal:
        assert terminal.ending() == 0
    began = b"kopt compile ..."
    assert terminal.shown.startswith(began + b"\r" + b" " * len(began) + b"\r")


@pytest.mark.slow  # two servers on a terminal
def test_server_on_a_terminal_is_heard_of_at_once_too(kopt: Kopt, tmp_path: Path) -> None:
    del kopt
    began = b"kopt serve ..."
    wiped = began + b"\r" + b" " * len(began) + b"\r"
    with OnTerminal((KOPT, "serve"), {**os.environ, "TERM": "dumb"}) as terminal:
        terminal.read_until(b"waiting for an MCP client")
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.ending() == 130
    assert terminal.shown.startswith(wiped + b"kopt serve: waiting")
    with OnTerminal((KOPT, "serve", "--new-token", tmp_path / "token"), os.environ) as terminal:
        assert terminal.ending() == 0
    assert terminal.shown.startswith(wiped + str(tmp_path).encode())


@pytest.mark.parametrize("command", first_quick(COMMANDS, 3))
def test_pipe_is_told_before_the_modules_are_read(command: str) -> None:
    told = subprocess.run(
        [sys.executable, "-P", "-c", UNREAD, command, "x"], capture_output=True, text=True
    )
    first, second = told.stderr.splitlines()[:2]
    assert (first, "not read yet" in told.stderr, told.stdout) == (f"kopt {command} ...", True, "")
    assert second


@pytest.mark.parametrize("words", ["list", "docs search x", "help run", "suite score", "--version"])
def test_command_that_answers_soon_says_nothing_before(kopt: Kopt, words: str) -> None:
    assert kopt(*words.split()).first_line == ""


@pytest.mark.parametrize("words", [group.split() for group in sorted(LONG)])
def test_command_that_may_take_seconds_is_one_that_there_is(kopt: Kopt, words: list[str]) -> None:
    assert kopt(*words, "--help").code == 0
    assert kopt(*words, "--no-such-option").first_line == f"kopt {' '.join(words)} ..."


def test_caller_that_takes_json_gets_nothing_but_json(kopt: Kopt, mine: Path) -> None:
    ending = kopt("compile", mine, "--kernel", KERNEL, "--json")
    assert (ending.first_line, ending.stderr, ending.document["status"]) == ("", "", "passed")


class _Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(text)


def test_stderr_whose_reader_went_away_ends_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", _Broken())
    announce(["check", "mine.cu"])


@pytest.mark.slow  # a full check
def test_full_check_says_which_case_of_how_many_it_is_at(kopt: Kopt, mine: Path) -> None:
    words = ("--kernel", KERNEL, "--device", "sim", "--level", "full")
    lines = kopt("check", mine, *words).stderr.splitlines()
    places = [re.match(r"(\d+) of (\d+): ", line) for line in lines]
    counted = [(int(one[1]), int(one[2])) for one in places if one]
    total = counted[0][1]
    assert counted == [(number, total) for number in range(1, total + 1)] and total > 3


@pytest.mark.slow  # a build
def test_export_says_which_build_it_is_at(kopt: Kopt, mine: Path, tmp_path: Path) -> None:
    words = ("--kernel", KERNEL, "--arch", "sm_90a", "--as", "cuda", "-o", tmp_path / "out")
    lines = kopt("export", mine, *words).stderr.splitlines()
    assert any(line.startswith("compiling 1 of ") for line in lines)
    assert lines[-1] == "writing"
