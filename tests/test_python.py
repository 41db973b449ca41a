"""What `import kopt` offers: complete, lazy, and as docs/python.md shows it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kopt
from kopt.config.settings import Settings
from support.shared_caches import share_caches

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text("utf-8")
REFERENCE = kopt.find_kernel("silu_and_mul_b8xh14336")[0].folder / "reference.cu"


def test_every_public_name_is_there() -> None:
    assert {name: getattr(kopt, name).__name__ for name in kopt.__all__} == {
        name: "compile_case" if name == "compile" else name for name in kopt.__all__
    }
    assert set(kopt.__all__) <= set(dir(kopt))
    absent = "optimise"
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        getattr(kopt, absent)


def test_importing_kopt_loads_nothing_else() -> None:
    code = "import sys, kopt; print([name for name in sys.modules if name.startswith('kopt.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_of_the_page_runs(tmp_path: Path, shared_caches: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    home = share_caches(tmp_path / "home", shared_caches)
    done = subprocess.run(
        [sys.executable, "-c", example],
        capture_output=True,
        text=True,
        env={**os.environ, "KOPT_HOME": str(home)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "passed silu_and_mul_b8xh14336" in done.stdout


def test_a_case_is_of_a_path_of_text_or_of_a_candidate() -> None:
    problem, _ = kopt.find_kernel("silu_and_mul_b8xh14336")
    of_path = kopt.case(problem, REFERENCE)
    of_text = kopt.case(problem, REFERENCE.read_text("utf-8"))
    assert of_path.candidate.id == of_text.candidate.id
    assert kopt.case(problem, of_path.candidate) == of_path
    assert of_path.kernel_id == problem.kernel_ids[0]


def test_a_tune_value_that_is_not_declared_is_refused() -> None:
    problem, _ = kopt.find_kernel("silu_and_mul_b8xh14336")
    with pytest.raises(kopt.ToolError, match="tune NOPE=1"):
        kopt.case(problem, REFERENCE, {"NOPE": 1})


def test_a_broken_candidate_is_data(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    broken = kopt.case("silu_and_mul_b8xh14336", "/* kopt: 2 */\nint x;\n", settings=settings)
    result = kopt.check(broken, device="sim", settings=settings)
    assert result.status is kopt.Status.PLAN_ERROR
    assert kopt.compile(broken, settings=settings).status is kopt.Status.PLAN_ERROR


def test_an_unknown_kernel_is_said_before_the_candidate_is_read(tmp_path: Path) -> None:
    with pytest.raises(kopt.ToolError, match="nope"):
        kopt.case("nope", tmp_path / "absent.cu")


@pytest.mark.parametrize("value", [True, [1], "1", 1.0])
def test_a_tune_value_that_is_no_int_is_refused(value: Any) -> None:
    problem, _ = kopt.find_kernel("silu_and_mul_b8xh14336")
    with pytest.raises(kopt.ToolError, match="a tune value is an int"):
        kopt.case(problem, REFERENCE, {"NOPE": value})


def test_a_wrong_choice_is_refused_before_any_work() -> None:
    case = kopt.case("silu_and_mul_b8xh14336", REFERENCE)
    wrong: Any = "fast"
    with pytest.raises(kopt.ToolError, match="level 'fast' is none of quick, full"):
        kopt.check(case, device="no such device", level=wrong)
    with pytest.raises(kopt.ToolError, match="baselines 'fast' is none of auto, library"):
        kopt.bench(case, device="no such device", baselines=wrong)
