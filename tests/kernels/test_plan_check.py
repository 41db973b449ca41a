"""Plans against compiled kernels: each disagreement is one diagnostic at the launch's line."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.case import Case
from kopt.kernels.compile_result import KernelParameter, KernelResources
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_check import block_registers, check_plan, with_axis_widths
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem
from support.tiny_problem import HEADER, tiny_candidate, tiny_problem

H100 = gpu_for_arch("sm_90a")
SIZES = (8, 8, 4, 4)


def plan_of(problem: Problem, header: str = HEADER) -> LaunchPlan:
    case = Case(problem, problem.workload("b8xh64"), tiny_candidate(header))
    plan = resolve_plan(case, H100).plan
    assert plan is not None, case.parsed.diagnostics
    return plan


def parameters(*sizes: int) -> tuple[KernelParameter, ...]:
    """Return parameters at naturally aligned offsets; 128 bytes align to 64."""
    made: list[KernelParameter] = []
    offset = 0
    for ordinal, size in enumerate(sizes):
        alignment = min(size, 64)
        offset = -(-offset // alignment) * alignment
        made.append(KernelParameter(ordinal=ordinal, offset_bytes=offset, size_bytes=size))
        offset += size
    return tuple(made)


def kernel(**changes: Any) -> KernelResources:
    facts: dict[str, Any] = {
        "name": "scale_rows",
        "registers_per_thread": 32,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "stack_bytes": 0,
        "static_smem_bytes": 0,
        "constant_bytes": 0,
        "barriers": 0,
        "max_threads_per_block": None,
        "parameters": parameters(*SIZES),
        "instructions": None,
    }
    return KernelResources(**{**facts, **changes})


def messages(problem: Problem, plan: LaunchPlan, *kernels: KernelResources) -> list[str]:
    found = check_plan(plan, kernels, problem, H100)
    assert all(diagnostic.line == 5 for diagnostic in found)
    return [diagnostic.message for diagnostic in found]


def test_plan_that_agrees_passes(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    assert messages(problem, plan_of(problem), kernel()) == []


def test_missing_kernel_names_near_matches(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    found = messages(problem, plan_of(problem), kernel(name="scale_row"), kernel(name="other"))
    assert found == ["launch 1 (scale_rows): the cubin has no such kernel; did you mean scale_row?"]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((8, 8, 4), "4 arguments (x, out, H, scale), but the kernel has 3 parameters (of 8, 8, 4"),
        ((8, 8, 4, 4, 4), "the kernel has 5 parameters"),
        ((), "0 parameters (of no bytes)"),
        ((8, 4, 4, 4), "argument 2 is the tensor 'out' (out, pointer to float32), 8 bytes, but"),
        ((8, 8, 2, 4), "argument 3 is the axis 'H' (int32 or int64), 4 or 8 bytes, but"),
        (
            (8, 8, 4, 8),
            "argument 4 is 'scale' (float32), 4 bytes, but the kernel's parameter 4 has 8",
        ),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, sizes: tuple[int, ...], message: str) -> None:
    problem = tiny_problem(tmp_path)
    found = messages(problem, plan_of(problem), kernel(parameters=parameters(*sizes)))
    assert len(found) == 1
    assert message in found[0]


def test_shifted_parameter_is_named(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    shifted = (*parameters(8, 8, 4), KernelParameter(ordinal=3, offset_bytes=32, size_bytes=4))
    found = messages(problem, plan_of(problem), kernel(parameters=shifted))
    assert "at byte 20 of the parameters, but the kernel's parameter lies at 32" in found[0]


def test_tensor_map_is_128_bytes_at_a_multiple_of_64(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    header = HEADER.replace("launch:", "tensor_maps: {m: {tensor: x, box: '1, 4'}}\nlaunch:")
    plan = plan_of(problem, header.replace("args: [x, out", "args: [H, m, out"))
    launch = plan.launches[0].model_copy(update={"line": 5})
    plan = plan.model_copy(update={"launches": (launch,)})
    good = kernel(parameters=parameters(4, 128, 8, 4, 4))
    assert good.parameters[1].offset_bytes == 64
    assert messages(problem, plan, good) == []
    assert "128 bytes" in messages(problem, plan, kernel(parameters=parameters(4, 8, 8, 4, 4)))[0]


def test_tensor_map_is_aligned_where_the_parameters_begin(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    header = HEADER.replace("launch:", "tensor_maps: {m: {tensor: x, box: '1, 4'}}\nlaunch:")
    plan = plan_of(problem, header.replace("args: [x, out", "args: [m, out"))
    launch = plan.launches[0].model_copy(update={"line": 5})
    plan = plan.model_copy(update={"launches": (launch,)})
    for first in (48, 112):  # aligned to 64 bytes, as from CUDA 13.2 on, or to 128
        places = zip((first, first + 128, first + 136, first + 140), (128, 8, 4, 4), strict=True)
        at_528 = tuple(
            KernelParameter(ordinal=number, offset_bytes=offset, size_bytes=size)
            for number, (offset, size) in enumerate(places)
        )
        assert messages(problem, plan, kernel(parameters=at_528, parameter_base_bytes=528)) == []
        assert messages(problem, plan, kernel(parameters=at_528)) != []


def test_axis_becomes_as_wide_as_its_parameter(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    plan = plan_of(problem)
    wide = kernel(parameters=parameters(8, 8, 8, 4))
    assert messages(problem, plan, wide) != []
    corrected = with_axis_widths(plan, [wide])
    assert [argument.kind for argument in corrected.launches[0].arguments] == [
        "tensor",
        "tensor",
        "int64",
        "float32",
    ]
    assert messages(problem, corrected, wide) == []
    assert with_axis_widths(corrected, [kernel()]) == plan


def test_typed_expression_keeps_its_width(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    plan = plan_of(problem, HEADER.replace("H, scale", "{int32: H}, scale"))
    wide = kernel(parameters=parameters(8, 8, 8, 4))
    assert with_axis_widths(plan, [wide]) == plan
    assert "argument 3 is 'H' (int32), 4 bytes" in messages(problem, plan, wide)[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_threads_per_block": 64}, "128 threads, over the kernel's __launch_bounds__(64)"),
        ({"static_smem_bytes": 1}, "1 bytes of static and 232448 of dynamic"),
        ({"registers_per_thread": 255}, None),
    ],
)
def test_resource_beyond_the_device_is_named(
    tmp_path: Path, changes: dict[str, int], message: str | None
) -> None:
    problem = tiny_problem(tmp_path)
    plan = plan_of(problem, HEADER.replace("block: BLOCK", "block: BLOCK\n    smem: 232448"))
    found = messages(problem, plan, kernel(**changes))
    assert [message in text for text in found if message] == ([True] if message else [])


def test_registers_of_a_block_must_fit_the_register_file(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    plan = plan_of(problem, HEADER.replace("block: BLOCK", "block: 1024"))
    assert messages(problem, plan, kernel(registers_per_thread=64)) == []
    found = messages(problem, plan, kernel(registers_per_thread=65))
    assert "1024 threads of 65 registers take 73728" in found[0]


def test_registers_are_counted_in_units_of_allocation() -> None:
    assert block_registers(32, 128) == 4 * 1024
    assert block_registers(33, 128) == 4 * 1280
    assert block_registers(32, 33) == 4 * 1024


def one_per_sm(kernel: str, threads: int, smem: int) -> int:
    return 1


def two_per_sm(kernel: str, threads: int, smem: int) -> int:
    return 2


def test_cooperative_grid_must_be_co_resident(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    header = HEADER.replace("grid: B", "grid: SM_COUNT * 2\n    cooperative: true")
    plan = plan_of(problem, header)
    one = check_plan(plan, [kernel()], problem, H100, one_per_sm)
    assert "a cooperative grid of 264 blocks; 1 per SM on 132 SMs of H100 are 132" in one[0].message
    assert check_plan(plan, [kernel()], problem, H100, two_per_sm) == ()
    assert check_plan(plan, [kernel()], problem, H100) == ()


def test_a_kernel_under_its_cpp_name_is_told_the_missing_words(tmp_path: Path) -> None:
    problem = tiny_problem(tmp_path)
    mangled = kernel(name="_Z10scale_rowsPKfPfif")
    (found,) = check_plan(plan_of(problem), [mangled], problem, H100)
    assert "under its C++ name" in found.message
    assert 'extern "C"' in (found.hint or "")
