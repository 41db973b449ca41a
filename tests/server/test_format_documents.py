"""The examples of docs/problems.md and docs/candidates.md are accepted, and name all there is."""

import re
from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.dtypes import DTYPE_SIZE_BYTES
from kopt.kernels.expression_parser import FUNCTIONS
from kopt.kernels.families import FAMILIES
from kopt.kernels.header import CandidateHeader, LaunchTemplate
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.source_names import kopt_headers
from kopt.server.exits import ExitCode
from support.command_line import Kopt

DOCS = Path(__file__).parents[2] / "docs"
PROBLEMS = (DOCS / "problems.md").read_text("utf-8")
CANDIDATES = (DOCS / "candidates.md").read_text("utf-8")
FILES = {
    "yaml": ("problem.yaml",),
    "python": ("oracle.py", "baseline.py"),
    "cuda": ("reference.cu",),
}
IMPLIED = {"lines", "fast_math", "max_registers"}


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


HEADERS = _blocks(CANDIDATES, "yaml")


@pytest.fixture(scope="module")
def problem_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the documented problem, its files as the document has them."""
    folder = tmp_path_factory.mktemp("problems") / "scale_rows"
    folder.mkdir()
    for language, names in FILES.items():
        for name, block in zip(names, _blocks(PROBLEMS, language), strict=True):
            (folder / name).write_text(block)
    return folder


@pytest.mark.slow  # a whole check
def test_the_documented_problem_passes_its_own_check(kopt: Kopt, problem_folder: Path) -> None:
    file = problem_folder / "reference.cu"
    assert kopt("check", file, "--level", "full").code == ExitCode.PASSED


def test_the_documented_problem_is_listed(kopt: Kopt, problem_folder: Path) -> None:
    ending = kopt("list", "--problems", problem_folder.parent, "--json")
    ids = {kernel["kernel"] for kernel in ending.document["kernels"]}
    assert {"scale_rows_r16xc256", "scale_rows_r4xc1000"} <= ids


def test_the_documented_baseline_can_be_bound(problem_folder: Path) -> None:
    problem = load_problem(problem_folder)
    assert load_baseline(problem, problem.baselines[0]).library.startswith("torch ")


@pytest.mark.parametrize("text", HEADERS, ids=[f"example {n}" for n in range(1, len(HEADERS) + 1)])
def test_every_documented_header_resolves_for_its_whole_domain(
    text: str, problem_folder: Path
) -> None:
    problem = load_problem(problem_folder)
    source = f"/* {text}*/\n"
    case = Case(problem, problem.workloads[0], Candidate(source, "mine.cu"))
    assert case.header is not None, case.parsed.diagnostics
    for workload in case.domain:
        for tune in case.at(workload).choices:
            plan = resolve_plan(case.at(workload).with_tune(tune), gpu_for_arch("sm_100a"))
            assert plan.diagnostics == ()


def test_the_page_names_every_key_of_the_grammar() -> None:
    keys = {*CandidateHeader.model_fields, *LaunchTemplate.model_fields, "flags", "launch"}
    missing = [key for key in keys - IMPLIED - {"line"} if f"`{key}`" not in CANDIDATES]
    assert missing == []


def test_the_pages_name_every_choice() -> None:
    words = set(re.findall(r"[A-Za-z0-9_]+", CANDIDATES))
    assert set(FAMILIES) | set(FUNCTIONS) <= words
    assert {name for name in kopt_headers() if f"<{name}>" not in CANDIDATES} == set()
    assert {name for name in (*DTYPE_SIZE_BYTES, *REGIMES) if name not in PROBLEMS} == set()


def test_a_problem_without_reference_shows_a_skeleton_and_says_what_a_search_needs(
    kopt: Kopt, problem_folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / problem_folder.name
    copy.mkdir()
    for name in ("problem.yaml", "oracle.py"):
        (copy / name).write_text((problem_folder / name).read_text())
    ending = kopt("show", "scale_rows_r16xc256", "--problems", copy)
    assert ending.code == ExitCode.PASSED
    assert f"--skeleton --problems {copy} > mine.cu" in ending.stdout
    ending = kopt("run", "--kernel", "scale_rows_r16xc256", "--problems", copy)
    assert ending.code == ExitCode.USAGE
    assert "--start" in ending.stderr
