"""A variant that no workload takes is told: nothing of it is compiled, checked or measured."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.domain import unserved_variants
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.server.views.diagnostics import uncovered_lines
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.facts.compile_facts import remark_facts
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
    ("conditions", "unserved"),
    [
        (("true",), ()),
        (("B <= 16", "true"), ()),
        (("B <= 16", "B % 8 == 0", "true"), ("true",)),
        (("B <= 64", "B <= 128", "true"), ("B <= 128", "true")),
        (("B == 1", "true"), ("B == 1",)),
    ],
)
def test_variant_serves_no_workload_if_another_is_taken_first_or_its_condition_never_holds(
    conditions: tuple[str, ...], unserved: tuple[str, ...], tmp_path: Path
) -> None:
    problem = tiny_problem(tmp_path)
    assert conditions_without_workload(with_variants(*conditions), problem) == unserved


def test_only_workloads_of_the_domain_count(tmp_path: Path) -> None:
    source = with_variants("B <= 16", "true").replace("kopt: 1", 'kopt: 1\nwhere: "B == 32"')
    assert conditions_without_workload(source, tiny_problem(tmp_path)) == ("B <= 16",)


def test_compiling_names_it_and_builds_the_others(
    compile_problem: Problem, settings: Settings
) -> None:
    source = with_variants("B <= 16", "B % 8 == 0", "true") + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.status, result.unserved, result.left_out) == (Status.PASSED, ("true",), ())
    assert [build.workloads for build in result.builds] == [("b8xh64", "b32xh256")]
    assert "'true'" in str(remark_facts(result)["unserved_variants"])
    assert "Variant 'when: true': taken by no workload within `where`" in said(result)


def test_variants_that_are_all_taken_are_not_told(
    compile_problem: Problem, settings: Settings
) -> None:
    source = with_variants("B <= 16", "true") + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.unserved, said(result)) == ((), "")
    assert "unserved_variants" not in remark_facts(result)


def test_a_build_that_fails_does_not_tell_it(compile_problem: Problem, settings: Settings) -> None:
    source = with_variants("B <= 16", "B % 8 == 0", "true") + BODY.replace("float* out", "floot* o")
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.status, result.unserved) == (Status.COMPILE_ERROR, ())


def test_conditions_are_told_on_one_line_each_and_not_all_of_them(
    compile_problem: Problem, settings: Settings
) -> None:
    strange = r"B ==\n\n  1 or\x1c\x85\u2028 B == 2"  # escapes of YAML
    never = [f"B == {n} or " + " or ".join(["H == 1"] * 30) for n in range(1, 8)]
    header = with_variants("B <= 64", *never, "true").replace('"B == 1 or', f'"{strange} or', 1)
    result = compile_candidate(request_for(compile_problem, header + BODY), settings)
    assert result.unserved[0].startswith("B == 1 or B == 2 or H == 1")
    lines = said(result).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) < 300
    assert lines[-1] == "... and 5 more such variants"


def conditions_without_workload(header: str, problem: Problem) -> tuple[str, ...]:
    parsed = parse_header(Candidate(header + BODY), problem).header
    assert parsed is not None
    return tuple(variant.when for variant in unserved_variants(parsed, problem))


def said(result: CompileResult) -> str:
    return "\n".join(line.plain for line in uncovered_lines(result))
