"""A variant that no workload takes is told: nothing of it is compiled, checked or measured."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.domain import unserved_variants
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.search.facts.compile_facts import remark_facts
from kopt.tools.compile_stage import compile_candidate
from support.compile_requests import request_for
from support.tiny_problem import BODY, HEADER, tiny_problem

LAUNCH = """  - when: "{}"
    launch: [{{kernel: scale_rows, grid: B, block: BLOCK, args: [x, out, H, scale]}}]
"""


def with_variants(*conditions: str) -> str:
    """Return the header of scale_rows, B 8 and 32, with a variant for each condition."""
    variants = "".join(map(LAUNCH.format, conditions))
    return f"{HEADER[: HEADER.index('launch:')]}variants:\n{variants}*/\n"


@pytest.mark.parametrize(
    ("conditions", "idle"),
    [
        (("true",), []),
        (("B <= 16", "true"), []),
        (("B <= 16", "B % 8 == 0", "true"), [3]),
        (("B <= 64", "B <= 128", "true"), [2, 3]),
        (("B == 1", "true"), [1]),
    ],
)
def test_variant_serves_no_workload_if_another_is_taken_first_or_its_condition_never_holds(
    conditions: tuple[str, ...], idle: list[int], tmp_path: Path
) -> None:
    problem = tiny_problem(tmp_path)
    header = parse_header(Candidate(with_variants(*conditions) + BODY), problem).header
    assert header is not None
    assert list(unserved_variants(header, problem)) == idle


def test_only_workloads_of_the_domain_count(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    source = with_variants("B <= 16", "true").replace("kopt: 1", 'kopt: 1\nwhere: "B == 32"')
    header = parse_header(Candidate(source + BODY), problem).header
    assert header is not None
    assert list(unserved_variants(header, problem)) == [1]


def test_compiling_warns_of_it_at_its_line_and_builds_the_others(
    compile_problem: Problem, settings: Settings
) -> None:
    source = with_variants("B <= 16", "B % 8 == 0", "true") + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.status, result.unserved) == (Status.PASSED, ("true",))
    assert result.left_out == ()
    (warning,) = result.diagnostics
    assert warning.severity == "warning"
    assert warning.message.startswith("variant 3 (when: true) serves no workload of the domain")
    assert source.splitlines()[(warning.line or 0) - 1] == '  - when: "true"'
    assert "when true" in str(remark_facts(result)["unserved"])


def test_variants_that_are_all_taken_are_not_warned_of(
    compile_problem: Problem, settings: Settings
) -> None:
    source = with_variants("B <= 16", "true") + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.unserved, result.diagnostics) == ((), ())
    assert "unserved" not in remark_facts(result)
