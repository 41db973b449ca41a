"""A narrower `where`: it holds for what is kept of a domain, and for nothing else of it."""

from pathlib import Path

import pytest

from kopt.kernels.domain import domain, narrowed_where
from kopt.kernels.header import CandidateHeader
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem, Workload
from support.tiny_problem import HEADER, tiny_candidate, tiny_problem

SHAPES = {
    "small": (8, 4096),
    "middle": (128, 4096),
    "wide": (128, 8192),
    "large": (1024, 8192),
    "odd": (1000, 100),
}


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    workloads = tuple(
        Workload(name=name, axes={"B": rows, "H": columns, "HB": columns // 16})
        for name, (rows, columns) in SHAPES.items()
    )
    return tiny_problem(tmp_path).model_copy(update={"workloads": workloads})


@pytest.mark.parametrize(
    ("kept", "condition"),
    [
        (("small", "middle", "wide"), "B <= 128"),
        (("large",), "B >= 1024"),
        (("odd",), "H <= 100"),
        (("small", "large"), "B == 8 or B == 1024"),
        (("middle", "large"), "(B == 128 and H == 4096) or (B == 1024 and H == 8192)"),
    ],
)
def test_shortest_condition_tells_the_kept_workloads_from_the_others(
    problem: Problem, kept: tuple[str, ...], condition: str
) -> None:
    assert narrowed(problem, "true", kept) == condition


def test_what_was_demanded_stays_demanded(problem: Problem) -> None:
    assert narrowed(problem, "H % 8 == 0", ("small",)) == "H % 8 == 0 and B <= 8"
    either = "B < 1000 or H > 100"
    assert narrowed(problem, either, ("small", "large")) == (
        "(B < 1000 or H > 100) and (B == 8 or B == 1024)"
    )


def narrowed(problem: Problem, where: str, kept: tuple[str, ...]) -> str:
    """Return the narrower `where`, which was read back: it claims `kept` and nothing else."""
    header = parsed(problem, where)
    found = narrowed_where(header, problem, [problem.workload(name) for name in kept])
    assert tuple(one.name for one in domain(parsed(problem, found), problem)) == kept
    return found


def parsed(problem: Problem, where: str) -> CandidateHeader:
    """Return the header that claims `where`."""
    text = HEADER.replace("launch:", f"where: {where}\nlaunch:")
    outcome = parse_header(tiny_candidate(text), problem)
    assert outcome.header is not None, outcome.diagnostics
    return outcome.header
