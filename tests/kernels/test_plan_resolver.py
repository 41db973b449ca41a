"""Launch plans: the numbers of one workload, and each limit that refuses a plan."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.case import Case
from kopt.kernels.domain import domain, tune_choices
from kopt.kernels.header import CandidateHeader
from kopt.kernels.plan import PlanOutcome
from kopt.kernels.plan_resolver import (
    needs_blocks_per_sm,
    resolve_plan,
)
from kopt.kernels.problem import Problem
from support.tiny_problem import HEADER, tiny_candidate, tiny_problem

B200 = gpu_for_arch("sm_100a")
A100 = gpu_for_arch("sm_80")

RICH = """\
/* kopt: 1
family: other
where: H >= 64
specialize: [H]
tune: {BLOCK: [128, 256, 512], ROWS: [1, 2, 4]}
tune_where: [BLOCK * ROWS <= 512, ROWS <= B // 4]
scratch: {partial: {dtype: float32, shape: "B, HB", init: zero}}
tensor_maps: {x_map: {tensor: x, box: "ROWS, 16", swizzle: 64, fill: nan}}
variants:
  - when: B <= 8
    set: {ROWS: 2}
    launch:
      - {kernel: scale_rows, grid: "ceil_div(B, ROWS), 2", block: "32, 4", smem: ROWS * H * 4,
         cluster: "2", args: [x_map, partial, out, {int32: ROWS}, {int64: "B * H"}, B, scale]}
  - when: true
    launch:
      - {kernel: persistent, grid: blocks_per_sm * SM_COUNT, block: BLOCK, args: [x, out, H]}
*/
"""


def case_of(text: str, problem: Problem, workload: str = "b8xh64") -> Case:
    case = Case(problem, problem.workload(workload), tiny_candidate(text))
    assert case.header is not None, case.parsed.diagnostics
    return case


def header_of(text: str, problem: Problem) -> CandidateHeader:
    header = case_of(text, problem).header
    assert header is not None
    return header


def resolved(
    problem: Problem, text: str, workload: str = "b8xh64", tune: Mapping[str, int] | None = None
) -> PlanOutcome:
    return resolve_plan(case_of(text, problem, workload).with_tune(tune or {}), B200)


def test_first_matching_variant_gives_every_number(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    plan = resolved(problem, RICH).plan
    assert plan is not None
    assert plan.defines == {"BLOCK": 128, "ROWS": 2, "KOPT_H": 64}
    assert plan.axes == {"B": 8, "H": 64, "HB": 4}
    assert [(s.shape, s.init) for s in plan.scratch] == [((8, 4), "zero")]
    mapped = plan.tensor_maps[0]
    assert (mapped.view, mapped.box, mapped.element_strides) == ((8, 64), (2, 16), (1, 1))
    launch = plan.launches[0]
    assert (launch.grid, launch.block, launch.cluster) == ((4, 2, 1), (32, 4, 1), (2, 1, 1))
    assert launch.dynamic_smem_bytes == 512
    assert [(a.kind, a.name, a.value, a.is_axis) for a in launch.arguments] == [
        ("tensor_map", "x_map", None, False),
        ("scratch", "partial", None, False),
        ("tensor", "out", None, False),
        ("int32", "ROWS", 2, False),
        ("int64", "B * H", 512, False),
        ("int32", "B", 8, True),
        ("float32", "scale", 2.0, False),
    ]


def test_domain_is_where_the_condition_holds(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    header = header_of(HEADER.replace("launch:", "where: B > 8\nlaunch:"), problem)
    assert [workload.name for workload in domain(header, problem)] == ["b32xh256"]


def test_workload_outside_the_domain_has_no_plan(tmp_path: Path) -> None:
    text = HEADER.replace("launch:", "where: B > 8\nlaunch:")
    outcome = resolved(tiny_problem(tmp_path), text)
    assert outcome.plan is None
    assert "outside the candidate's domain" in outcome.diagnostics[0].message
    assert outcome.diagnostics[0].line == 4


def test_choices_satisfy_their_conditions_with_the_default_first(tmp_path: Path) -> None:
    header = header_of(RICH, tiny_problem(tmp_path))
    choices = tune_choices(header)
    assert choices[0] == {"BLOCK": 128, "ROWS": 1}
    assert [(c["BLOCK"], c["ROWS"]) for c in choices] == [
        (128, 1),
        (128, 2),
        (128, 4),
        (256, 1),
        (256, 2),
        (512, 1),
    ]
    assert {choice["ROWS"] for choice in tune_choices(header, {"B": 8, "H": 64})} == {1, 2}


def test_header_without_tune_has_one_choice(tmp_path: Path) -> None:
    text = HEADER.replace("tune: {BLOCK: [128, 256]}\n", "").replace("BLOCK", "128")
    assert tune_choices(header_of(text, tiny_problem(tmp_path))) == ({},)


@pytest.mark.parametrize(
    ("tune", "message"),
    [
        ({"BLOK": 1}, "unknown tune name 'BLOK'; did you mean BLOCK?"),
        ({"BLOCK": 64}, "BLOCK is 64; declared are 128, 256, 512"),
        ({"BLOCK": 512, "ROWS": 4}, "'BLOCK * ROWS <= 512' does not hold for BLOCK=512, ROWS=4"),
    ],
)
def test_tune_values_outside_the_declaration_are_refused(
    tmp_path: Path, tune: dict[str, int], message: str
) -> None:
    outcome = resolved(tiny_problem(tmp_path), RICH, "b32xh256", tune)
    assert message in outcome.diagnostics[0].message
    assert outcome.plan is None


def test_chosen_tune_value_reaches_defines_and_block(tmp_path: Path) -> None:
    plan = resolved(tiny_problem(tmp_path), HEADER, tune={"BLOCK": 256}).plan
    assert plan is not None
    assert plan.defines == {"BLOCK": 256}
    assert plan.launches[0].block == (256, 1, 1)


def test_occupancy_enters_the_grid(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    case = case_of(RICH, problem, "b32xh256")
    assert needs_blocks_per_sm(header_of(RICH, problem))
    assert not needs_blocks_per_sm(header_of(HEADER, problem))
    asked: list[tuple[str, int, int]] = []

    def three(kernel: str, threads: int, smem: int) -> int:
        asked.append((kernel, threads, smem))
        return 3

    known = resolve_plan(case, B200, three).plan
    assert known is not None
    assert known.launches[0].grid == (3 * B200.sm_count, 1, 1)
    assert asked == [("persistent", 128, 0)]
    unknown = resolve_plan(case, B200).plan
    assert unknown is not None
    assert unknown.launches[0].grid == (B200.sm_count, 1, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid: B", "grid: B - 8", "grid.x is 0; 1 to 2147483647"),
        ("grid: B", "grid: B - 9", "grid.x is -1"),
        ("grid: B", "grid: 4294967296", "grid.x is 4294967296"),
        ("grid: B", "grid: 1, 65536", "grid.y is 65536; 1 to 65535"),
        ("grid: B", "grid: 1, 1, 65536", "grid.z is 65536"),
        ("grid: B", "grid: H // (B - 8)", "division by zero in 'H // (B - 8)'"),
        ("block: BLOCK", "block: BLOCK * 16", "block.x is 2048; 1 to 1024"),
        ("block: BLOCK", "block: 33, 32", "33 * 32 * 1 is 1056 threads; at most 1024"),
        ("block: BLOCK", "block: 1, 1, 65", "block.z is 65; 1 to 64"),
        ("block: BLOCK", "block: 0", "block.x is 0"),
        ("block: BLOCK", "block: BLOCK\n    smem: 232449", "232449 bytes; 0 to 232448"),
        ("block: BLOCK", "block: BLOCK\n    smem: 0 - 4", "smem is -4 bytes"),
        (
            "block: BLOCK",
            "block: BLOCK\n    cluster: 3",
            "grid.x = 8 is no multiple of cluster.x = 3",
        ),
        ("block: BLOCK", "block: BLOCK\n    cluster: 16", "a cluster of 16 blocks; at most 8"),
        ("block: BLOCK", "block: BLOCK\n    cluster: 0", "must be positive"),
        ("H, scale]", "{int32: H * 100000000}, scale]", "is 6400000000, which no int32 holds"),
        ("launch:", "scratch: {p: {dtype: int8, shape: B - 8}}\nlaunch:", "must be positive"),
        (
            "launch:",
            'scratch: {p: {dtype: int8, shape: "274877906944 + 1"}}\nlaunch:',
            "at most 274877906944",
        ),
    ],
)
def test_number_beyond_a_limit_is_one_diagnostic(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in HEADER
    outcome = resolved(tiny_problem(tmp_path), HEADER.replace(old, new, 1))
    assert outcome.plan is None
    found = [diagnostic for diagnostic in outcome.diagnostics if message in diagnostic.message]
    assert len(found) == 1, outcome.diagnostics
    assert found[0].line is not None


def test_limits_are_inclusive(tmp_path: Path) -> None:
    text = HEADER.replace("block: BLOCK", "block: 16, 1, 64\n    smem: 232448\n    cluster: 8")
    assert resolved(tiny_problem(tmp_path), text).diagnostics == ()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("box: '1, 3'", "has 12 bytes; a multiple of 16"),
        ("box: '1, 257'", "box holds 257; 1 to 256"),
        ("box: '0, 4'", "box holds 0"),
        ("box: 4", "box has 1 axes, the view 2"),
        ("box: '1, 4', element_strides: '1, 9'", "element_strides holds 9; 1 to 8"),
        ("box: '1, 64', swizzle: 128", "has 256 bytes, over the swizzle of 128"),
        ("box: '1, 4', view: '8, 65'", "the view has 520 elements, 'x' only 512"),
        ("box: '1, 4', view: '8, 6'", "the stride of view axis 0 is 24 bytes; a multiple of 16"),
        ("box: '1, 4', interleave: 16", "interleave 16 needs at least 3 axes"),
        ("box: '1, 1, 4', view: '2, 4, 64', interleave: 32", "interleave 32 needs swizzle 32"),
        ("box: '1, 4', view: 'B // (H - 64), 4'", "division by zero"),
    ],
)
def test_tensor_map_that_no_driver_takes_is_refused(
    tmp_path: Path, entry: str, message: str
) -> None:
    text = HEADER.replace("launch:", f"tensor_maps: {{m: {{tensor: x, {entry}}}}}\nlaunch:")
    outcome = resolved(tiny_problem(tmp_path), text)
    assert [message in found.message for found in outcome.diagnostics] == [True]
    assert outcome.diagnostics[0].line == 4


def test_nan_fill_of_integers_is_refused(tmp_path: Path) -> None:
    declared = (
        "scratch: {p: {dtype: int32, shape: 64}}\n"
        "tensor_maps: {m: {tensor: p, box: 4, fill: nan}}\nlaunch:"
    )
    outcome = resolved(tiny_problem(tmp_path), HEADER.replace("launch:", declared))
    assert "needs a floating-point dtype, not int32" in outcome.diagnostics[0].message


@pytest.mark.parametrize(
    ("old", "new", "feature"),
    [
        ("block: BLOCK", "block: BLOCK\n    cluster: 2", "clusters"),
        ("block: BLOCK", "block: BLOCK\n    pdl: true", "pdl"),
    ],
)
def test_hopper_features_are_refused_on_older_gpus(
    tmp_path: Path, old: str, new: str, feature: str
) -> None:
    problem = tiny_problem(tmp_path)
    case = case_of(HEADER.replace(old, new), problem)
    outcome = resolve_plan(case, A100)
    assert f"{feature} need compute capability 9.0" in outcome.diagnostics[0].message
    assert resolve_plan(case, B200).plan is not None


def test_axis_beyond_int32_is_passed_as_int64(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    workload = problem.workload("b8xh64")
    huge = workload.model_copy(update={"axes": {**workload.axes, "H": 2**31}})
    outcome = resolve_plan(case_of(HEADER, problem).at(huge), B200)
    assert outcome.plan is not None
    assert outcome.plan.launches[0].arguments[2].kind == "int64"
