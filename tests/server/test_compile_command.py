"""`kopt compile` with the real compiler: the table, the JSON, what a failure looks like."""

from pathlib import Path

import pytest

from kopt.kernels.problem_loader import load_problems
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.quick_cases import first_quick

PROBLEMS = Path(__file__).parents[2] / "kernels" / "problems"
SILU = PROBLEMS / "silu_and_mul" / "reference.cu"


@pytest.mark.parametrize(
    "archs", first_quick(["--arch sm_100a,sm_90a", "--arch sm_100a --arch sm_90a"], 1)
)
def test_architectures_stand_below_each_other_in_one_table(kopt: Kopt, archs: str) -> None:
    ending = kopt("compile", SILU, *archs.split())
    rows = [line for line in ending.stdout.splitlines() if line.startswith("  ") and " sm_" in line]
    assert ending.code == 0
    assert [row.split("sm_")[1].split()[0] for row in rows] == ["100a", "90a"]
    assert "silu_and_mul_b8xh14336" in ending.stdout


def test_one_file_gives_a_compile_document(kopt: Kopt) -> None:
    document = kopt("compile", SILU, "--json").document
    assert (document["schema"], document["status"]) == ("kopt.compile/1", "passed")
    assert document["kernel"] == "silu_and_mul_b8xh14336"
    assert document["builds"][0]["arch"] == "sm_100a"


def test_several_files_give_one_document_and_the_first_failure_as_its_status(
    kopt: Kopt, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text("no header")
    ending = kopt("compile", SILU, broken, "--kernel", "silu_and_mul_b128xh14336", "--json")
    assert ending.code == ExitCode.FELL_SHORT
    assert ending.document["schema"] == "kopt.compile_list/1"
    assert ending.document["status"] == "plan_error"
    assert [result["status"] for result in ending.document["results"]] == ["passed", "plan_error"]


def test_a_compile_error_shows_its_line_and_what_to_do(kopt: Kopt, tmp_path: Path) -> None:
    source = kopt("show", "silu_and_mul_b8xh14336", "--skeleton").stdout
    broken = tmp_path / "broken.cu"
    broken.write_text(source.replace("blockIdx.x", "blokIdx.x"))
    ending = kopt("compile", broken, "--kernel", "silu_and_mul_b8xh14336")
    lines = broken.read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, start=1) if "blokIdx.x" in text)
    assert ending.code == ExitCode.FELL_SHORT
    assert f"broken.cu:{line}" in ending.stdout
    assert "blokIdx" in ending.stdout
    assert "compile_error" in ending.stdout
    assert "What to do:" in ending.stdout


@pytest.mark.slow  # a compile of its own
@pytest.mark.parametrize("problem", first_quick(["add_rmsnorm_fp4quant", "rope_quantize_fp8"], 1))
def test_the_skeleton_of_show_compiles(kopt: Kopt, tmp_path: Path, problem: str) -> None:
    kernel = load_problems()[problem].kernel_ids[0]
    mine = tmp_path / "mine.cu"
    mine.write_text(kopt("show", kernel, "--skeleton").stdout)
    assert kopt("compile", mine, "--kernel", kernel).code == 0
