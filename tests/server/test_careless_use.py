"""Mistakes that people make, each answered by one line, an exit code and no traceback."""

import errno
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.kernels.problem_loader import load_problems
from kopt.server.exits import ExitCode, failure_of
from kopt.tools.selftest.sample import SAMPLES
from support.command_line import Kopt

KERNELS = sum(len(problem.kernel_ids) for problem in load_problems().values())
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


def test_a_missing_gpu_is_refused_rather_than_replaced(kopt: Kopt, reference: Path) -> None:
    """What says so depends on what is here: no driver, no such GPU, no libraries."""
    ending = kopt("check", reference, "--kernel", KERNEL, "--device", "cuda:999")
    assert ending.code == ExitCode.MACHINE
    assert any(way in ending.stderr for way in ("--device sim", "CUDA shows", "kopt-mcp[gpu]"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--device", "gpu"), "auto, sim (the CPU simulator), sim:H200"),
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
    assert "neither an architecture such as sm_90a nor a GPU such as H100" in ending.stderr


def test_an_architecture_without_data_sheet_names_those_that_have_one(kopt: Kopt) -> None:
    ending = kopt("list", "--arch", "sm_70")
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


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        ("nvfp4", "did you mean nvfp4_quantize"),
        ("zzz", f"'kopt list' shows the {KERNELS} that there are"),
    ],
)
def test_a_kernel_unlike_any_is_answered_in_one_short_line(
    kopt: Kopt, kernel: str, said: str
) -> None:
    ending = kopt("show", kernel)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
    assert len(ending.stderr) < 250


@pytest.mark.parametrize(
    ("tune", "said"),
    [("BLOK=128", "declares BLOCK"), ("BLOCK=77", "declares 256, 128, 512, 1024")],
)
@pytest.mark.parametrize("command", ["check", "compile", "profile"])
def test_an_undeclared_tune_value_is_the_caller_s_mistake(
    kopt: Kopt, reference: Path, command: str, tune: str, said: str
) -> None:
    ending = kopt(command, reference, "--tune", tune)
    assert ending.code == ExitCode.USAGE
    assert ending.stderr == f"kopt: --tune {tune}: reference.cu {said}\n"


def test_a_tune_value_that_every_variant_overrides_is_the_caller_s_mistake(
    kopt: Kopt, reference: Path
) -> None:
    winner = reference.parent / "winners" / "silu_and_mul.sm_90a.cu"
    ending = kopt("check", winner, "--tune", "BLOCK=64")
    assert ending.code == ExitCode.USAGE
    assert "--tune BLOCK=64 changes nothing: every variant" in ending.stderr


def test_a_tune_value_that_a_variant_leaves_open_is_taken(kopt: Kopt) -> None:
    sample = SAMPLES / "good_variants_by_shape.cu"
    words = ("--kernel", "merge_state_n8xh64xd128", "--tune", "WARPS=8")
    assert kopt("compile", sample, *words).code == ExitCode.PASSED


@pytest.mark.slow  # compiles each way
def test_tune_values_may_come_in_one_option_or_in_several(kopt: Kopt, reference: Path) -> None:
    together = kopt("compile", reference, "--tune", "BLOCK=128", "--json").document
    apart = kopt("compile", reference, "--tune", "BLOCK=128", "--tune", "BLOK=1")
    assert together["builds"][0]["defines"] == {"BLOCK": 128}
    assert "BLOK=1" in apart.stderr  # the second is read beside the first
    twice = kopt("compile", reference, "--tune", "BLOCK=128", "--tune", "BLOCK=256")
    assert twice.code == ExitCode.USAGE
    assert "BLOCK is given twice: 128 and 256" in twice.stderr


def test_an_architecture_without_data_sheet_is_refused_before_any_work(
    kopt: Kopt, reference: Path
) -> None:
    ending = kopt("check", reference, "--arch", "sm_999")
    assert ending.code == ExitCode.USAGE
    assert "no GPU data sheet for sm_999; known: sm_100a" in ending.stderr


def test_example_and_skeleton_exclude_each_other(kopt: Kopt) -> None:
    assert kopt("show", KERNEL, "--example", "--skeleton").code == ExitCode.USAGE


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE])
def test_a_failing_system_call_is_the_machine_s_fault(number: int) -> None:
    failure = failure_of(OSError(number, os.strerror(number), "/somewhere/candidate.cubin"))
    assert failure.code == ExitCode.MACHINE
    assert failure.message == f"{os.strerror(number)} (/somewhere/candidate.cubin)"
    assert failure.hint


def test_compiler_that_fails_is_told_with_its_exit_code_and_what_to_do(
    kopt: Kopt, reference: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\nexit 7\n")
    compiler.chmod(0o700)
    monkeypatch.setenv("KOPT_CXX", str(compiler))
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    ending = kopt("check", reference)
    assert ending.code == ExitCode.MACHINE
    assert "ends with 7" in ending.stderr and "it says nothing" in ending.stderr
    assert "Name a g++ 11 or later in KOPT_CXX" in ending.stderr


def test_byte_order_mark_that_an_editor_left_is_no_mistake(
    kopt: Kopt, reference: Path, tmp_path: Path
) -> None:
    marked = tmp_path / "marked.cu"
    marked.write_bytes(b"\xef\xbb\xbf" + reference.read_bytes())
    plain = kopt("compile", reference, "--json").document
    ending = kopt("compile", marked, "--kernel", plain["kernel"], "--json")
    assert ending.code == ExitCode.PASSED
    assert ending.document["candidate"] == plain["candidate"]


def test_any_other_failing_system_call_is_a_bug() -> None:
    assert failure_of(OSError(errno.EBADF, "Bad file descriptor")).code == ExitCode.BUG


@pytest.mark.slow  # a process for each
@pytest.mark.parametrize("words", [("list",), ("list", "--json"), ("--help",)])
def test_a_full_disk_below_stdout_is_one_line_on_stderr(tmp_path: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-P", "-m", "kopt", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            # Without a buffer of stdout nothing is left to fail when the interpreter ends.
            env={**os.environ, "KOPT_HOME": str(tmp_path), "PYTHONUNBUFFERED": ""},
        )
    assert run.returncode == ExitCode.MACHINE
    hint = "What stdout goes to cannot be written: send it elsewhere.\n"
    assert run.stderr == f"kopt: No space left on device\n{hint}"
    assert "Traceback" not in run.stderr


def test_a_closed_stdout_is_no_crash(tmp_path: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -P -m kopt list >&-"
    run = subprocess.run(
        ["/bin/sh", "-c", command],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "KOPT_HOME": str(tmp_path)},
    )
    assert "Traceback" not in run.stderr


def test_a_run_store_on_a_full_disk_is_the_machine_s_fault() -> None:
    store = sqlite3.connect(":memory:")
    store.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as full:
        store.executescript("CREATE TABLE a (x); CREATE TABLE b (x); CREATE TABLE c (x);")
    store.close()
    assert failure_of(full.value).code == ExitCode.MACHINE


def test_runs_list_is_what_runs_alone_does(kopt: Kopt) -> None:
    assert kopt("runs", "list", "--json").document == kopt("runs", "--json").document
