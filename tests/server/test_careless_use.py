"""Mistakes that people make, each answered by one line, an exit code and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt

KERNEL = "silu_and_mul_b8xh14336"


@pytest.fixture
def reference() -> Path:
    """Return a candidate that exists and passes."""
    return Path(__file__).parents[2] / "kernels" / "problems" / "silu_and_mul" / "reference.cu"


def test_missing_file_is_named(kopt: Kopt) -> None:
    ending = kopt("check", "no/such.cu", "--kernel", KERNEL)
    assert ending.code == ExitCode.USAGE
    assert ending.stderr == "kopt: cannot read no/such.cu: No such file or directory\n"


def test_unknown_kernel_is_answered_with_near_matches(kopt: Kopt, reference: Path) -> None:
    ending = kopt("compile", reference, "--kernel", "silu_and_mul_b8xh14337")
    assert ending.code == ExitCode.USAGE
    assert KERNEL in ending.stderr
    assert ending.stderr.count("\n") == 1


def test_a_file_in_no_problem_folder_asks_for_its_kernel(kopt: Kopt, tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text("/* kopt: 1 */")
    ending = kopt("compile", tmp_path / "mine.cu")
    assert ending.code == ExitCode.USAGE
    assert "--kernel ID" in ending.stderr


def test_a_gpu_is_refused_rather_than_replaced(kopt: Kopt, reference: Path) -> None:
    ending = kopt("check", reference, "--kernel", KERNEL, "--device", "cuda:0")
    assert ending.code == ExitCode.MACHINE
    assert "--device sim" in ending.stderr


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--device", "gpu"), "auto, sim, cuda:0"),
        (("--seeds", "1,x"), "not a list of whole numbers"),
        (("--seeds", ""), "not a list of whole numbers"),
        (("--tune", "BLOCK"), "NAME=NUMBER"),
        (("--level", "slow"), "quick"),
    ],
)
def test_a_wrong_value_says_what_is_allowed(
    kopt: Kopt, reference: Path, flags: tuple[str, str], said: str
) -> None:
    ending = kopt("check", reference, "--kernel", KERNEL, *flags)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr


def test_a_wrong_architecture_says_what_one_looks_like(kopt: Kopt, reference: Path) -> None:
    ending = kopt("compile", reference, "--arch", "hopper")
    assert ending.code == ExitCode.USAGE
    assert "sm_100a" in ending.stderr


def test_an_architecture_without_data_sheet_names_those_that_have_one(kopt: Kopt) -> None:
    ending = kopt("list", "--arch", "sm_75")
    assert ending.code == ExitCode.USAGE
    assert "sm_100a" in ending.stderr


def test_no_compiler_where_the_setting_points(
    kopt: Kopt, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_NVCC", "/nowhere/nvcc")
    ending = kopt("compile", reference, "--json")
    assert ending.code == ExitCode.MACHINE
    assert "KOPT_NVCC" in ending.document["message"]


def test_an_unusable_state_folder_names_the_variable(
    kopt: Kopt, reference: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "file" / "home"))
    ending = kopt("compile", reference)
    assert ending.code == ExitCode.MACHINE
    assert "KOPT_HOME" in ending.stderr


def test_a_problem_folder_without_problems_is_named(kopt: Kopt, tmp_path: Path) -> None:
    ending = kopt("list", "--problems", tmp_path)
    assert ending.code == ExitCode.USAGE
    assert str(tmp_path) in ending.stderr


def test_the_installed_command_ends_with_the_same_code(tmp_path: Path) -> None:
    """The calls above run in this process; this one goes through the entry point."""
    run = subprocess.run(
        [sys.executable, "-P", "-m", "kopt", "show", "nothing_like_this"],
        capture_output=True,
        text=True,
        env={**os.environ, "KOPT_HOME": str(tmp_path)},
    )
    assert (run.returncode, run.stdout) == (ExitCode.USAGE, "")
    assert run.stderr.startswith("kopt: no kernel is called 'nothing_like_this'")
