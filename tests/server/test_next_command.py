"""The line `Next:` under a result: it can be pasted, and what it names works."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from kopt.tools.facts.next_command import NextCommand
from support.command_line import Ending, Kopt
from support.shared_caches import share_caches
from support.small_silu import KERNEL, write_small_silu

pytestmark = pytest.mark.slow  # each call that a command leads to

SIM = ("--device", "sim")
KERNEL_OF_KOPT = "silu_and_mul_b8xh14336"
BROKEN = "out_row[column] = "


@pytest.fixture
def mine(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_caches: Path) -> Path:
    """Return a sound kernel in a folder with a blank in its name, which is the current one."""
    del kopt  # sets its own home first
    problems = write_small_silu(tmp_path / "problems")
    folder = tmp_path / "my work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    monkeypatch.setenv("KOPT_HOME", str(share_caches(tmp_path / "own-home", shared_caches)))
    (source,) = problems.rglob("reference.cu")
    file = folder / "mine.cu"
    file.write_text(source.read_text("utf-8"))
    return file


def _next(ending: Ending) -> str:
    """Return the one command that the output ends with."""
    lines = ending.stdout.splitlines()
    found = [line for line in lines if line.startswith("Next: ")]
    assert len(found) == 1 and lines[-1:] == found, ending
    return found[0].removeprefix("Next: ")


def _later(ending: Ending) -> list[str]:
    """Return the commands that may follow the next one."""
    lines = ending.stdout.splitlines()
    return [line.removeprefix("Later: ") for line in lines if line.startswith("Later: ")]


def _pasted(line: str) -> list[str]:
    """Return the words as a shell reads them."""
    return shlex.split(line, comments=True)


def _followed(kopt: Kopt, ending: Ending) -> Ending:
    command, *words = _pasted(_next(ending))
    assert command == "kopt"
    return kopt(*words)


def test_one_leads_from_compiling_to_an_export_that_can_be_read(kopt: Kopt, mine: Path) -> None:
    """Compile, check, check in full, bench, profile; then run, export, its README."""
    ending = kopt("compile", mine, "--kernel", KERNEL)
    for began in ("kopt check ", "kopt check ", "kopt bench ", "kopt profile "):
        line = _next(ending)
        assert line.startswith(began) and str(mine) in _pasted(line), line
        ending = _followed(kopt, ending)
        assert ending.code == ExitCode.PASSED, ending
    run = kopt("run", "--kernel", KERNEL, "--start", mine, "--no-models", *SIM)
    export = _followed(kopt, run)
    assert (run.code, export.code) == (ExitCode.PASSED, ExitCode.PASSED)
    readme = subprocess.run(_pasted(_next(export)), capture_output=True, text=True, check=True)
    assert KERNEL.rpartition("_")[0] in readme.stdout


def test_architecture_that_was_compiled_for_is_the_one_that_is_checked(
    kopt: Kopt, mine: Path
) -> None:
    compiled = kopt("compile", mine, "--kernel", KERNEL, "--arch", "sm_89,sm_86")
    assert _next(compiled).startswith(f"kopt check '{mine}' --kernel {KERNEL} --arch sm_89 ")
    assert _followed(kopt, compiled).code == ExitCode.PASSED
    mine.write_text(mine.read_text("utf-8").replace(BROKEN, "nothing = ", 1))
    failed = kopt("compile", mine, "--kernel", KERNEL, "--arch", "sm_89,sm_86")
    assert "kopt compile" in _next(failed) and "--arch sm_89,sm_86" in _next(failed)


@pytest.mark.parametrize("command", ["compile", "check", "bench"])
def test_what_fell_short_is_called_again_once_it_is_mended(
    kopt: Kopt, mine: Path, command: str
) -> None:
    sound = mine.read_text("utf-8")
    mine.write_text(sound.replace("threadIdx.x", "threadIdx.nothing"))
    ending = kopt(command, mine, "--kernel", KERNEL, "--tune", "BLOCK=128")
    assert ending.code == ExitCode.FELL_SHORT
    assert "BLOCK=128" in _pasted(_next(ending))
    mine.write_text(sound)
    assert _followed(kopt, ending).code == ExitCode.PASSED


@pytest.mark.parametrize("fault", ["threadIdx.nothing", "threadIdx.x + 1"])
def test_start_that_is_broken_is_evaluated_once_and_then_mended(
    kopt: Kopt, mine: Path, fault: str
) -> None:
    """One does not compile, the other fails its check."""
    sound = mine.read_text("utf-8")
    mine.write_text(sound.replace("threadIdx.x", fault))
    ending = kopt("run", "--kernel", KERNEL, "--start", mine, "--no-models", *SIM)
    assert ending.code == ExitCode.FELL_SHORT
    assert "1 of 1 candidates evaluated" in ending.stdout
    assert "which no tune value fixes" in ending.stdout
    assert _followed(kopt, ending).code == ExitCode.FELL_SHORT
    mine.write_text(sound)
    assert _followed(kopt, ending).code == ExitCode.PASSED


def test_steps_lead_on_until_the_run_has_ended(kopt: Kopt, mine: Path) -> None:
    mine.write_text(mine.read_text("utf-8").replace("threadIdx.x", "threadIdx.nothing"))
    ending = kopt("step", "--kernel", KERNEL, mine, *SIM)
    assert str(mine) in _pasted(_next(ending))
    assert _followed(kopt, ending).code == ExitCode.FELL_SHORT  # the same file is known already
    run = ending.stdout.split()[0]
    for _ in range(6):
        ending = kopt("step", "--run", run)
        if "bench" in _next(ending):
            break
        assert _followed(kopt, ending).code == ExitCode.PASSED
    assert _followed(kopt, ending).code == ExitCode.PASSED


def test_export_of_a_run_is_that_of_its_winner(kopt: Kopt, mine: Path, tmp_path: Path) -> None:
    words = ("--kernel", KERNEL, "--start", mine, "--no-models", "--json", *SIM)
    report = kopt("run", *words).document
    ending = kopt("export", report["run"], "--as", "cuda", "-o", tmp_path / "a", "--json")
    assert ending.document["candidate"] == report["candidate"]
    part = report["run"].removeprefix("run-")
    assert kopt("export", part, "--as", "cuda", "-o", tmp_path / "b").code == ExitCode.PASSED


def test_export_of_a_run_without_winner_names_its_candidates(kopt: Kopt, mine: Path) -> None:
    mine.write_text(mine.read_text("utf-8").replace("threadIdx.x", "threadIdx.nothing"))
    run = kopt("run", "--kernel", KERNEL, "--start", mine, "--no-models", "--json", *SIM)
    ending = kopt("export", run.document["run"], "--as", "cuda")
    assert ending.code == ExitCode.USAGE
    assert re.search(r"has no winner: name a candidate of it, as run-[\d-]+/0", ending.stderr)


def test_folder_of_problems_is_named_again_and_json_has_no_such_line(
    kopt: Kopt, mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KOPT_PROBLEMS")
    words = ("compile", mine, "--kernel", KERNEL, "--problems", tmp_path / "problems")
    assert _followed(kopt, kopt(*words)).code == ExitCode.PASSED
    assert json.loads(kopt(*words, "--json").stdout)["status"] == "passed"


def test_folder_of_problems_is_named_in_the_command_for_a_gpu_too(
    kopt: Kopt, mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KOPT_PROBLEMS")
    own = ("--problems", tmp_path / "problems")
    ending = kopt("run", "--kernel", KERNEL, "--start", mine, "--no-models", *SIM, *own)
    (on_gpu,) = _later(ending)
    assert on_gpu.startswith("kopt bench ") and "# on a GPU" in on_gpu
    assert _pasted(on_gpu)[-3:] == ["--promote", *map(str, own)]


def test_what_show_proposes_works_as_printed_for_problems_of_ones_own(
    kopt: Kopt, mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KOPT_PROBLEMS")
    shown = kopt("show", KERNEL, "--problems", tmp_path / "problems")
    words, then = _pasted(_next(shown)), _later(shown)
    assert words[-2:] == [">", "mine.cu"]
    mine.write_text(kopt(*words[1:-2]).stdout)
    assert kopt(*_pasted(then[0])[1:], *SIM).code == ExitCode.PASSED
    own = ["--problems", str(tmp_path / "problems")]
    assert [_pasted(line)[1] for line in then] == ["check"]  # which leads on from there
    assert _pasted(then[0])[-2:] == own


def test_run_that_is_shown_again_ends_with_a_command_for_what_became_of_it(
    kopt: Kopt, mine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its winner is exported, and what has none is looked at; its problems need no name."""
    monkeypatch.delenv("KOPT_PROBLEMS")
    words = ("--kernel", KERNEL, "--no-models", "--json", *SIM, "--problems", tmp_path / "problems")
    sound = kopt("run", *words).document["run"]
    shown = kopt("runs", "show", sound)
    assert _next(shown).startswith(f"kopt export {sound} --as torch")
    assert _followed(kopt, shown).code == ExitCode.PASSED
    mine.write_text(mine.read_text("utf-8").replace("threadIdx.x", "threadIdx.nothing"))
    failed = kopt("run", *words, "--start", mine).document["run"]
    shown = kopt("runs", "show", failed)
    assert _next(shown).startswith(f"kopt runs report {failed}")
    assert _followed(kopt, shown).code == ExitCode.PASSED


def test_words_that_a_shell_would_split_are_quoted() -> None:
    line = NextCommand(("kopt", "check", "my file.cu"), "why").line(Path("a b"))
    assert line == "Next: kopt check 'my file.cu' --problems 'a b'  # why"


@pytest.mark.parametrize(("path", "program"), [("/usr/bin", "my venv/bin/kopt"), ("", "kopt")])
def test_kopt_is_named_by_its_path_where_no_shell_finds_it_by_name(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, program: str
) -> None:
    """`make run` activates no virtual environment: a shell finds no kopt after it."""
    monkeypatch.setattr("sys.argv", ["my venv/bin/kopt"])
    (tmp_path / "kopt").write_text("#!/bin/sh\n")
    (tmp_path / "kopt").chmod(0o700)
    monkeypatch.setenv("PATH", path or str(tmp_path))
    assert _pasted(_next(kopt("show", KERNEL_OF_KOPT)))[0] == program
