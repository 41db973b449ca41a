"""Shapes that a full check draws beside the named workloads: which, from what, and at what cost."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import Build, CompileResult, KernelParameter
from kopt.kernels.header_parser import parse_header
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_check import check_plan
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.check import stage
from kopt.tools.check.cases import Seeds, buffer_bytes, plan_cases
from kopt.tools.check.hidden_shapes import HiddenShapes, draw_hidden_shapes, row_like_axes
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda import planned_build
from kopt.tools.cuda.compile_stage import CompileRequest
from kopt.tools.cuda.planned_build import plan_builds
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.facts.check_facts import hidden_shape_words
from support.checked_jobs import KERNEL_FACTS, TOOLCHAIN
from support.synthetic_check import NumpyDevice, synthetic_problem

ARCH = "sm_90a"
OUTPUTS = ("kept", "codes", "block_scale", "y_bf16", "y_fp8", "total")
POINTERS = tuple(
    KernelParameter(ordinal=place, offset_bytes=8 * place, size_bytes=8)
    for place in range(len(OUTPUTS))
)
KERNEL = KERNEL_FACTS.model_copy(update={"parameters": POINTERS})
SEEDS = Seeds(visible=(1, 2, 3), hidden=(1001, 1002))


@dataclass(frozen=True)
class Written:
    """A candidate by what its header says beside its launch."""

    problem: Problem
    keys: str = ""
    launch: str = "launch: [{kernel: k, grid: B, block: 32, args: [ARGS]}]"

    @property
    def case(self) -> Case:
        launch = self.launch.replace("ARGS", ", ".join(OUTPUTS))
        source = f"/* kopt: 1\nfamily: other\n{self.keys}\n{launch}\n*/\n"
        return Case(self.problem, self.problem.workloads[0], Candidate(source))

    @property
    def compiled(self) -> CompileResult:
        """Builds as the compile stage plans them; every cubin has the kernel `k`."""
        builds = (
            Build(
                arch=ARCH,
                defines=build.defines,
                workloads=tuple(plan.workload for plan in build.plans),
                cubin_sha256="c" * 64,
                cubin_path=f"/{place}.cubin",
                module_global_bytes=0,
                kernels=(KERNEL,),
                toolchain=TOOLCHAIN,
                compile_s=0.1,
                cached=False,
            )
            for place, build in enumerate(plan_builds(self.case, (ARCH,)).builds)
        )
        return CompileResult(
            status=Status.PASSED, kernel=self.case.kernel_id, candidate="0", builds=tuple(builds)
        )

    def drawn(self, seeds: Seeds = SEEDS) -> HiddenShapes:
        cases = plan_cases(self.problem, self.case.domain, "full", seeds)
        return draw_hidden_shapes(self.case, self.compiled, gpu_for_arch(ARCH), cases)

    def rows(self, seeds: Seeds = SEEDS) -> list[int]:
        return [one.workload.axes["B"] for one in self.drawn(seeds).cases]


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return synthetic_problem(tmp_path / "problem", ((16, 64), (8, 64), (128, 64)))


def test_small_row_counts_and_larger_ones_are_drawn(problem: Problem) -> None:
    one, odd, even, warp, beyond, some, many = Written(problem).rows()
    assert one == 1
    assert odd in (3, 5, 7)
    assert even in (2, 4, 6)
    assert 9 <= warp <= 32
    assert 129 <= beyond < 160
    assert beyond % 2
    assert 33 <= some < 128
    assert many >= 160


@pytest.mark.slow  # hundreds of draws
def test_no_range_of_row_counts_is_safe_from_a_draw(problem: Problem) -> None:
    drawn = {
        rows
        for seed in range(150)
        for rows in Written(problem).rows(Seeds(visible=(1, 2, 3), hidden=(seed, seed + 1)))
    }
    assert drawn >= set(range(1, 8))
    assert len(drawn & set(range(9, 33))) > 16
    assert drawn & {48, 64, 80, 96, 112}
    for least, most in ((33, 64), (64, 128), (160, 300), (300, 600), (600, 1_200), (1_200, 4_160)):
        assert drawn & set(range(least, most)), (least, most)


def test_every_second_drawn_shape_has_the_scalars_of_the_problem(problem: Problem) -> None:
    for seed in range(20):
        cases = Written(problem).drawn(Seeds(visible=(1, 2, 3), hidden=(seed, seed + 1))).cases
        kept = [case.keeps_scalars for case in cases]
        assert set(kept[::2]) ^ set(kept[1::2]) == {True, False}


def test_the_draw_follows_the_hidden_seeds(problem: Problem) -> None:
    other = Seeds(visible=(1, 2, 3), hidden=(7, 8))
    assert Written(problem).rows() == Written(problem).rows()
    assert Written(problem).rows() != Written(problem).rows(other)
    assert Written(problem).rows(Seeds(visible=(1, 2, 3))) == []


@pytest.mark.parametrize(
    ("keys", "allowed"),
    [
        ('where: "B <= 16"', range(1, 17)),
        ('where: "B % 8 == 0"', range(0, 4_160, 8)),
        ('where: "B == 8 or B == 16"', range(0)),
        ("specialize: [B]", range(0)),
        ("tune: {STEP: [4]}\ntune_where: [B % STEP == 0]", range(0, 4_160, 4)),
    ],
)
def test_only_what_the_header_claims_is_drawn(problem: Problem, keys: str, allowed: range) -> None:
    rows = Written(problem, keys).rows()
    assert all(count in allowed for count in rows)
    assert bool(rows) == bool(allowed)


def test_a_variant_without_a_build_is_not_drawn(problem: Problem) -> None:
    launch = "[{kernel: k, grid: B, block: 32, args: [ARGS]}]"
    variants = (
        f'variants: [{{when: "B % 8 == 0", launch: {launch}}}, {{when: "true", launch: {launch}}}]'
    )
    assert all(rows % 8 == 0 for rows in Written(problem, launch=variants).rows())


def test_the_build_with_the_same_values_serves_a_drawn_shape(problem: Problem) -> None:
    launch = "[{kernel: k, grid: B, block: STEP, args: [ARGS]}]"
    variants = (
        f'variants: [{{when: "B <= 16", set: {{STEP: 32}}, launch: {launch}}},'
        f' {{when: "true", launch: {launch}}}]'
    )
    drawn = Written(problem, "tune: {STEP: [64, 32]}", variants).drawn()
    served = {n: b.defines["STEP"] for b in drawn.compiled.builds for n in b.workloads}
    for one in drawn.cases:
        assert served[one.workload.name] == (32 if one.workload.axes["B"] <= 16 else 64)


def test_drawn_shapes_take_an_eighth_of_the_bytes_at_most(tmp_path: Path) -> None:
    problem = synthetic_problem(tmp_path / "problem", ((2048, 2048), (512, 2048)))
    cases = plan_cases(problem, problem.workloads, "full", SEEDS)
    total = sum(buffer_bytes(problem, one.workload) * len(one.runs) for one in cases)
    drawn = Written(problem).drawn().cases
    assert 0 < sum(buffer_bytes(problem, one.workload) for one in drawn) <= 0.125 * total


def test_heads_and_expert_rows_are_drawn_and_columns_are_not() -> None:
    axes = {
        kernel: row_like_axes(find_kernel(kernel)[0])
        for kernel in ("silu_mul_fp4quant_b8xm256xk7168", "rope_quantize_fp8_n8xh128")
    }
    assert list(axes.values()) == [("B", "M"), ("N", "H")]


@dataclass(frozen=True)
class _RightUpTo128:
    """Spoils what has more rows."""

    def __call__(self, request: ExecutionRequest, outputs: Arrays) -> None:
        rows = request.program.plan.axes["B"]
        if rows > 128:
            outputs["y_bf16"][128:] = 0


def _check(
    written: Written, monkeypatch: pytest.MonkeyPatch, home: Path, spoil: bool = True
) -> CheckResult:
    def compiled(request: CompileRequest, settings: Settings) -> CompileResult:
        del request, settings
        return written.compiled

    monkeypatch.setattr(stage, "compile_candidate", compiled)
    device = NumpyDevice(_RightUpTo128()) if spoil else NumpyDevice()
    request = CheckRequest(written.case, "full", arch=ARCH)
    return check_candidate(request, device, Settings(home=home, jobs=2))


def test_right_at_128_rows_and_wrong_beyond_does_not_pass(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = _check(Written(problem, 'where: "H == 64"'), monkeypatch, tmp_path)
    assert result.status is Status.INCORRECT
    assert [one.status for one in result.workloads] == [Status.PASSED] * 3
    *right, wrong = result.hidden_shapes
    assert {one.status for one in right} == {Status.PASSED}
    note = result.diagnostics[-1]
    assert note.message.startswith(f"{wrong.workload} is no named workload")
    assert note.hint is not None
    assert 'where: "H == 64 and (B == 8 or B == 16 or B == 128)"' in note.hint
    claimed = Written(problem, note.hint.split("only: ")[1].replace('"', "'"))
    assert _check(claimed, monkeypatch, tmp_path).status is Status.PASSED


def test_a_result_names_the_shapes_it_rests_on(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = _check(Written(problem), monkeypatch, tmp_path, spoil=False)
    assert result.status is Status.PASSED
    words = hidden_shape_words(result)
    assert words is not None
    assert all(one.workload in words for one in result.hidden_shapes)
    assert len(result.hidden_shapes) == 7


def test_the_header_is_parsed_once_and_the_plan_of_each_drawn_shape_checked_once(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checked: list[str] = []

    def counted(plan: LaunchPlan, *others: Any) -> tuple[Diagnostic, ...]:
        checked.append(plan.workload)
        return check_plan(plan, *others)

    monkeypatch.setattr(planned_build, "check_plan", counted)
    written = Written(problem)
    assert written.case.header is not None
    parsed = parse_header.cache_info().misses
    result = _check(written, monkeypatch, tmp_path, spoil=False)
    assert parse_header.cache_info().misses == parsed
    assert checked == [one.workload for one in result.hidden_shapes]


def test_an_oracle_that_serves_named_shapes_only_is_no_failure(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    oracle = problem.folder / "oracle.py"
    text = oracle.read_text("utf-8")
    oracle.write_text(
        text.replace(
            "    shape = (", '    assert workload.axes["B"] in (8, 16, 128)\n    shape = (', 1
        ),
        encoding="utf-8",
    )
    result = _check(Written(problem), monkeypatch, tmp_path, spoil=False)
    assert result.status is Status.PASSED
    assert result.hidden_shapes == ()
