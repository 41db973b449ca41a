"""The test that an export carries: it needs nothing of kopt, and notices what kopt's check does.

The kernel's place is taken by functions that answer with the oracle's own results, or nearly so.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.kernels.problem import Problem
from kopt.tools.export.folder_files import folder_files
from support.exports import exported_tiny, write_files
from support.quick_cases import first_quick
from support.tiny_problem import BODY, HEADER, tiny_problem

CALL = """\
import sys
import numpy as np

def call(arrays, axes):
    import oracle
    assert not any(name == "kopt" or name.startswith("kopt.") for name in sys.modules)
    assert "yaml" not in sys.modules, "the exported test needs more than it says"
    rounded = oracle.expected(arrays, {"scale": 2.0})["out"].rounded
    result = {name: array.copy() for name, array in arrays.items()}
    result["out"][...] = rounded
    DAMAGE
    return result
"""


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    return tiny_problem(tmp_path_factory.mktemp("problem"))


def run_test(problem: Problem, folder: Path, damage: str) -> tuple[int, str]:
    """Return exit code and output of an export's test with another `call.py`."""
    files = folder_files(exported_tiny(problem, HEADER + BODY), "cuda")
    write_files({**files, "test/call.py": CALL.replace("DAMAGE", damage)}, folder)
    command = [sys.executable, str(folder / "test" / "run.py"), "--seeds", "1,5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow  # 32 cases in a process
def test_right_results_pass_at_every_workload_kind_of_input_and_seed(
    problem: Problem, tmp_path: Path
) -> None:
    code, said = run_test(problem, tmp_path, "pass")
    assert (code, said.splitlines()[-1]) == (0, "32 passed, 0 failed")
    assert said.splitlines()[0] == "ok     b8xh64, normal inputs, seed 1"


@pytest.mark.parametrize(
    ("damage", "says"),
    first_quick(
        [
            (
                'result["out"][0, 3] += 1 + abs(result["out"][0, 3])',
                "element 3 of out (1 are wrong)",
            ),
            ('result["out"][1] = arrays["out"][1]', "of out"),
            ('result["x"][0, 0] += 1', "the input x was changed"),
        ],
        1,
    ),
)
def test_a_wrong_element_an_unwritten_row_and_a_changed_input_fail(
    problem: Problem, tmp_path: Path, damage: str, says: str
) -> None:
    code, said = run_test(problem, tmp_path, damage)
    assert (code, said.splitlines()[-1]) == (1, "0 passed, 32 failed")
    assert says in said.splitlines()[0]


def test_a_module_that_is_missing_is_named(problem: Problem, tmp_path: Path) -> None:
    files = folder_files(exported_tiny(problem, HEADER + BODY), "cuda")
    write_files({**files, "test/call.py": "import no_such_module"}, tmp_path)
    command = [sys.executable, str(tmp_path / "test" / "run.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == "no_such_module is missing: README.md says what the test needs\n"
    assert (done.returncode, done.stdout) == (1, "")


def test_a_program_that_finds_no_gpu_ends_the_test_with_its_words(
    problem: Problem, tmp_path: Path
) -> None:
    write_files(folder_files(exported_tiny(problem, HEADER + BODY), "cuda"), tmp_path)
    program = tmp_path / "build" / "run_case"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho no GPU >&2\nexit 1\n")
    program.chmod(0o755)
    command = [sys.executable, str(tmp_path / "test" / "run.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == f"no GPU\n{program} ended with 1\n"
    assert done.returncode == 1


def test_the_problem_goes_along_without_its_folder(problem: Problem) -> None:
    files = folder_files(exported_tiny(problem, HEADER + BODY), "cuda")
    document = json.loads(files["test/problem.json"])
    assert "folder" not in document
    assert [one["name"] for one in document["workloads"]] == ["b8xh64", "b32xh256"]
    assert str(problem.folder) not in "".join(str(text) for text in files.values())
