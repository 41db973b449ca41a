"""The functions of baseline.py: the packaged ones, and what a mistake in one says."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.problem import Baseline, Problem
from kopt.kernels.problem_loader import load_problem, load_problems
from support.tiny_problem import PROBLEM_YAML, write_tiny_problem

PACKAGED = [
    (problem, baseline) for problem in load_problems().values() for baseline in problem.baselines
]
IDS = [f"{problem.name}-{baseline.name}" for problem, baseline in PACKAGED]

BASELINE = """\
DISTRIBUTIONS = ("numpy",)

def double(tensors, scalars, pdl):
    return lambda: tensors["out"].fill(scalars["scale"])
"""


def tiny(folder: Path, text: str | None = BASELINE, entry: str = "double") -> Problem:
    written = write_tiny_problem(folder)
    baselines = f"baselines: [{{name: twice, entry: {entry}, layout: row_major}}]\n"
    (written / "problem.yaml").write_text(PROBLEM_YAML + baselines)
    if text is not None:
        (written / "baseline.py").write_text(text)
    return load_problem(written)


def scale_layout(problem: Problem) -> str:
    tiled = any(tensor.layout == "sf_128x4" for tensor in problem.tensors)
    return "sf_128x4" if tiled else "row_major"


@pytest.mark.parametrize(("problem", "baseline"), PACKAGED, ids=IDS)
def test_every_packaged_baseline_names_a_function_that_can_be_bound(
    problem: Problem, baseline: Baseline
) -> None:
    library = load_baseline(problem, baseline).library
    assert "flashinfer-python " in library
    assert library.startswith("torch " if problem.name == "gemm_bf16" else "flashinfer-python ")


def test_only_the_linear_expert_quantisation_has_no_baseline_of_its_own_layout() -> None:
    unlike = {
        problem.name
        for problem in load_problems().values()
        if scale_layout(problem) not in {baseline.layout for baseline in problem.baselines}
    }
    assert unlike == {"silu_mul_fp4quant_linear"}


@pytest.mark.parametrize(
    ("problem", "baseline"),
    [(problem, baseline) for problem, baseline in PACKAGED if True not in baseline.pdl],
    ids=[
        name for name, (_, baseline) in zip(IDS, PACKAGED, strict=True) if True not in baseline.pdl
    ],
)
def test_a_path_without_dependent_launch_refuses_it(problem: Problem, baseline: Baseline) -> None:
    with pytest.raises(NotImplementedError, match="no programmatic dependent launch"):
        load_baseline(problem, baseline).bind({}, {}, True)


def test_the_function_of_a_users_problem_is_bound_to_what_it_is_given(tmp_path: Path) -> None:
    problem = tiny(tmp_path)
    loaded = load_baseline(problem, problem.baselines[0])
    filled: list[float | int] = []

    class Tensor:
        def fill(self, value: float | int) -> None:
            filled.append(value)

    launch = loaded.bind({"out": Tensor()}, {"scale": 2.0}, False)
    assert not filled
    launch()
    assert filled == [2.0]


def test_the_library_is_named_with_its_installed_version(tmp_path: Path) -> None:
    text = BASELINE.replace('("numpy",)', '("numpy", "no-such-library")')
    problem = tiny(tmp_path, text)
    numpy, missing = load_baseline(problem, problem.baselines[0]).library.split(", ")
    assert numpy.removeprefix("numpy ")[0].isdigit()
    assert missing == "no-such-library not installed"


def test_an_edited_baseline_is_loaded_again(tmp_path: Path) -> None:
    problem = tiny(tmp_path)
    first = load_baseline(problem, problem.baselines[0])
    assert load_baseline(problem, problem.baselines[0]).bind is first.bind
    path = problem.folder / "baseline.py"
    path.write_text(BASELINE.replace("numpy", "pydantic"))
    assert load_baseline(problem, problem.baselines[0]).library.startswith("pydantic ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "baseline.py is missing: baseline 'twice' of scale_rows is a function of it"),
        ("import no_such_module_here\n", "fails to load: ModuleNotFoundError: No module named"),
        ("def double(:\n", "fails to load: SyntaxError"),
        (BASELINE.replace("def double", "def triple"), r"defines no function double\(\)"),
        (BASELINE + "double = 2\n", r"defines no function double\(\)"),
        (
            BASELINE.replace("scalars, pdl", "pdl"),
            r"double\(tensors, pdl\) must take \(tensors, scalars, pdl\)",
        ),
        (BASELINE.replace("DISTRIBUTIONS", "LIBRARY"), "must say whose code it calls"),
        (BASELINE.replace('("numpy",)', '"numpy"'), "must say whose code it calls"),
    ],
)
def test_a_mistake_in_a_baseline_is_named_with_its_file(
    tmp_path: Path, text: str | None, message: str
) -> None:
    problem = tiny(tmp_path, text)
    with pytest.raises(ToolError, match=message) as caught:
        load_baseline(problem, problem.baselines[0])
    assert str(problem.folder / "baseline.py") in str(caught.value)
