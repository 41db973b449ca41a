"""Money: nothing that Claude is paid for begins before somebody has agreed to it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.fake_messages import FakeMessages
from support.on_terminal import OnTerminal
from support.played.good import good_model
from support.shared_caches import share_caches
from support.small_silu import KERNEL, write_small_silu

KOPT = Path(sys.executable).with_name("kopt")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def service(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_caches: Path
) -> Iterator[FakeMessages]:
    """Yield a service that takes the key of this user, with a small kernel to search."""
    del kopt  # sets its own home first
    monkeypatch.setenv("KOPT_PROBLEMS", str(write_small_silu(tmp_path / "problems")))
    monkeypatch.setenv("KOPT_HOME", str(share_caches(tmp_path / "home", shared_caches)))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody")
    with FakeMessages(good_model) as fake:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", fake.url)
        yield fake


def _runs(kopt: Kopt) -> list[object]:
    runs: list[object] = kopt("runs", "--json").document["runs"]
    return runs


def test_without_a_kernel_nothing_is_begun_and_one_line_says_what_to_do(
    kopt: Kopt, service: FakeMessages
) -> None:
    ending = kopt("run", "--yes")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.count("\n") == 1
    assert "--kernel ID" in ending.stderr and "--all" in ending.stderr
    assert not service.requests and not _runs(kopt)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kernel", KERNEL), "Claude, up to $25, and"),
        (("--kernel", KERNEL, "--budget", "9"), "Claude, up to $25, and"),
        (("--all",), " runs up to $25 each, $"),
    ],
)
def test_without_a_terminal_a_paid_run_needs_an_amount_or_yes(
    kopt: Kopt, service: FakeMessages, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("run", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
    assert "--budget 5usd" in ending.stderr and "--yes" in ending.stderr
    assert not service.requests and not _runs(kopt)


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--budget", "3usd"), "Claude, up to $3 (Ctrl-C"), (("--yes",), "Claude, up to $25 (Ctrl-C")],
)
def test_an_amount_or_yes_begins_once_the_most_is_said(
    kopt: Kopt, service: FakeMessages, words: tuple[str, ...], said: str
) -> None:
    """The service says that the key is none, so that nothing is searched here."""
    service.lookup_status = 401
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", *words)
    assert ending.code == ExitCode.MACHINE
    assert ending.stderr.splitlines()[0].startswith(said)


@pytest.mark.slow  # processes on a terminal
@pytest.mark.parametrize("answer", [b"n\n", b"\n"])
def test_on_a_terminal_the_user_is_asked_and_no_begins_nothing(
    kopt: Kopt, service: FakeMessages, answer: bytes
) -> None:
    command = (KOPT, "run", "--kernel", KERNEL, "--device", "sim", "--budget", "5usd")
    with OnTerminal(command, os.environ) as terminal:
        terminal.read_until(b"Claude, up to $5 (Ctrl-C stops). Go on? [y/N]: ")
        terminal.type(answer)
        assert terminal.ending() == ExitCode.USAGE
    assert b"nothing was begun" in terminal.shown
    assert not service.requests and not _runs(kopt)


@pytest.mark.slow  # a whole run
def test_on_a_terminal_yes_to_the_question_begins(service: FakeMessages) -> None:
    service.lookup_status = 401
    command = (KOPT, "run", "--kernel", KERNEL, "--device", "sim")
    with OnTerminal(command, os.environ) as terminal:
        terminal.read_until(b"[y/N]: ")
        terminal.type(b"y\n")
        assert terminal.ending() == ExitCode.MACHINE
    assert b"budget: $25" in terminal.shown


@pytest.mark.slow  # a whole run
def test_no_models_asks_nobody_whatever_the_environment_has(
    kopt: Kopt, service: FakeMessages
) -> None:
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", "--no-models", "--rounds", "0")
    assert ending.code == ExitCode.PASSED
    assert "--no-models: none is asked" in ending.stderr
    assert not service.requests


@pytest.mark.slow  # two runs
def test_resuming_a_sweep_with_a_key_asks_before_claude_is_paid(
    kopt: Kopt, service: FakeMessages, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without_key:
        without_key.delenv("ANTHROPIC_API_KEY")
        words = ("--device", "sim", "--budget", "1", "--json")
        run = kopt("run", "--kernel", KERNEL, *words).document["run"]
    ending = kopt("run", "--resume", run, "--budget", "2")
    assert ending.code == ExitCode.USAGE
    assert "Claude, up to $25" in ending.stderr
    assert not service.requests


@pytest.mark.slow  # whole runs
@pytest.mark.parametrize("agreed", [("--yes",), ("--budget", "3,5usd")])
def test_run_that_began_without_models_never_takes_a_key(
    kopt: Kopt, service: FakeMessages, agreed: tuple[str, ...]
) -> None:
    words = ("--device", "sim", "--no-models", "--budget", "1", "--json")
    run = kopt("run", "--kernel", KERNEL, *words).document["run"]
    ending = kopt("run", "--resume", run, "--budget", "2", *agreed)
    assert (ending.code, "--no-models: none is asked" in ending.stderr) == (ExitCode.PASSED, True)
    assert not service.requests
    refused = kopt("run", "--resume", run, "--budget", "9", "--record", "calls.jsonl")
    assert (ending.code, refused.code) == (ExitCode.PASSED, ExitCode.USAGE)
    assert f"{run} asks no model" in refused.stderr


def test_small_number_of_evaluations_may_be_dollars_that_a_shell_took(
    kopt: Kopt, service: FakeMessages
) -> None:
    service.lookup_status = 401
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", "--budget", "5", "--yes")
    said = "5 evaluations (if you wrote $25 the shell took the $2: write 25usd)"
    assert said in ending.stderr.splitlines()[0]
    planned = kopt("run", "--kernel", KERNEL, "--device", "sim", "--budget", "5", "--dry-run")
    assert said in planned.stderr
    plain = kopt("run", "--kernel", KERNEL, "--device", "sim", "--budget", "50", "--yes")
    assert "the shell" not in plain.stderr


def test_make_run_spends_nothing_though_there_is_a_key() -> None:
    make = ("make", "-n", "run", "RUN_FLAGS=--device sim --budget 5usd")
    said = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (search,) = [line for line in said.splitlines() if "/kopt run " in line]
    assert search.endswith(" --no-models")


def test_study_asks_for_all_its_runs(kopt: Kopt, service: FakeMessages) -> None:
    words = ("--kernel", KERNEL, "--device", "sim", "--repeats", "2")
    ending = kopt("study", *words, "--arm", "full", "--arm", "minimal")
    assert ending.code == ExitCode.USAGE
    assert "4 runs up to $25 each, $100 in all" in ending.stderr
    assert not service.requests
