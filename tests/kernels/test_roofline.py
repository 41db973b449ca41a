"""Bytes, operations and floors against values counted by hand and the published problem table."""

from dataclasses import replace
from math import isclose
from pathlib import Path

import pytest

from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.tensor_cores import tensor_tflop_s
from kopt.kernels.expressions import ExpressionError
from kopt.kernels.problem import Problem, Role, TensorSpec, Workload
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import (
    compute_floor_us,
    memory_floor_us,
    roofline,
    workload_bytes,
)
from kopt.kernels.status import Provenance

# Megabytes (1e6) and floors in us at the data-sheet peaks of H100, H200 and B200, as counted apart
# from this code for every operator: every input once, every output once.
TABLE = [
    ("add_rmsnorm_fp4quant_b128xh2048", "1.724", "0.51", "0.36", "0.22"),
    ("add_rmsnorm_fp4quant_b128xh4096", "3.449", "1.03", "0.72", "0.43"),
    ("add_rmsnorm_fp4quant_b128xh8192", "6.898", "2.06", "1.44", "0.86"),
    ("nvfp4_quantize_m128xk14336", "4.702", "1.40", "0.98", "0.59"),
    ("silu_mul_fp4quant_b8xm256xk7168", "66.98", "20.0", "14.0", "8.37"),
    ("fused_add_rmsnorm_fp8_block_quant_b128xh7168", "8.301", "2.48", "1.73", "1.04"),
    ("fused_add_rmsnorm_fp8_block_quant_b1024xh7168", "66.30", "19.8", "13.8", "8.29"),
    ("fused_add_rmsnorm_quant_b128xh8192", "7.356", "2.20", "1.53", "0.92"),
    ("fused_add_rmsnorm_b128xh4096", "4.202", "1.25", "0.88", "0.53"),
    ("fused_add_rmsnorm_b1024xh8192", "67.1", "20.0", "14.0", "8.39"),
    ("silu_and_mul_b1024xh14336", "88.08", "26.3", "18.4", "11.0"),
    ("rope_quantize_fp8_n128xh128", "28.57", "8.5", "6.0", "3.6"),
    ("merge_state_n2048xh64xd128", "102.2", "30.5", "21.3", "12.8"),
]


def _rounded_like(value: float, text: str) -> str:
    """Return `value` with as many decimals as `text` has."""
    return f"{value:.{len(text.partition('.')[2])}f}"


def _tensor(name: str, role: Role, dtype: str, *shape: str) -> TensorSpec:
    return TensorSpec(name=name, role=role, dtype=dtype, shape=shape)


def _problem(*tensors: TensorSpec, flops: str = "0", matrix_flops: str = "0") -> Problem:
    return Problem(
        name="sample",
        op_type="sample",
        description="",
        axes={"M": None, "K": None},
        tensors=tensors,
        row_axis="M",
        workloads=(Workload(name="m100xk10", axes={"M": 100, "K": 10}),),
        tolerance="bf16",
        flops=flops,
        matrix_flops=matrix_flops,
        folder=Path("sample"),
    )


@pytest.mark.parametrize(("kernel_id", "megabytes", "h100", "h200", "b200"), TABLE)
def test_bytes_and_floors_are_those_of_the_problem_table(
    kernel_id: str, megabytes: str, h100: str, h200: str, b200: str
) -> None:
    problem, workload = find_kernel(kernel_id)
    model = workload_bytes(problem, workload)
    assert _rounded_like(model.total_bytes / 1e6, megabytes) == megabytes
    for gpu, floor in (("H100", h100), ("H200", h200), ("B200", b200)):
        assert _rounded_like(memory_floor_us(model, load_gpus()[gpu]), floor) == floor


def test_an_inout_tensor_counts_both_ways() -> None:
    problem = _problem(
        _tensor("x", "in", "bfloat16", "M", "K"),
        _tensor("residual", "inout", "bfloat16", "M", "K"),
        _tensor("out", "out", "uint8", "M", "K"),
    )
    model = workload_bytes(problem, problem.workloads[0])
    assert [(t.name, t.read_bytes, t.written_bytes) for t in model.tensors] == [
        ("x", 2000, 0),
        ("residual", 2000, 2000),
        ("out", 0, 1000),
    ]
    assert (model.read_bytes, model.written_bytes, model.total_bytes) == (4000, 3000, 7000)


def test_tiled_scales_count_with_their_padding() -> None:
    scales = TensorSpec(
        name="scales", role="out", dtype="float8_e4m3fn", shape=("M", "K"), layout="sf_128x4"
    )
    problem = _problem(scales)
    model = workload_bytes(problem, problem.workloads[0])
    assert model.written_bytes == 128 * 12  # 100 rows to 128, 10 columns to 12


def test_a_tensor_without_axes_is_one_element() -> None:
    problem = _problem(_tensor("scale", "in", "float32"))
    assert workload_bytes(problem, problem.workloads[0]).total_bytes == 4


def test_operations_come_from_the_problems_expression() -> None:
    problem = _problem(_tensor("x", "in", "float32", "M", "K"), flops="M * (3 * K + 2)")
    model = workload_bytes(problem, problem.workloads[0])
    assert model.flop == 3200
    assert model.flop_per_byte == 3200 / 4000


def test_an_unknown_axis_in_flops_is_an_expression_error() -> None:
    problem = _problem(flops="M * Z")
    with pytest.raises(ExpressionError, match="Z"):
        workload_bytes(problem, problem.workloads[0])


def test_a_problem_without_tensors_has_no_intensity_and_no_floor() -> None:
    problem = _problem(flops="0")
    model = workload_bytes(problem, problem.workloads[0])
    assert model.flop_per_byte == 0.0
    assert memory_floor_us(model, load_gpus()["B200"]) == 0.0


def test_intensity_below_the_ridge_is_bound_by_memory_and_above_by_compute() -> None:
    gpu = replace(load_gpus()["H100"], dram_bandwidth_gb_s=1000.0, fp32_tflop_s=20.0)
    gpu = replace(gpu, null_kernel_us=0.0)
    x = _tensor("x", "in", "float32", "M", "K")
    low = _problem(x, flops="19 * 4 * M * K")
    high = _problem(x, flops="21 * 4 * M * K")
    below = roofline(workload_bytes(low, low.workloads[0]), gpu)
    above = roofline(workload_bytes(high, high.workloads[0]), gpu)
    assert below.ridge_flop_per_byte == above.ridge_flop_per_byte == 20.0
    assert (below.bound, above.bound) == ("memory", "compute")
    assert below.floor_us == below.memory_floor_us > below.compute_floor_us
    assert above.floor_us == above.compute_floor_us > above.memory_floor_us
    assert isclose(below.attainable_tflop_s, 19.0)
    assert above.attainable_tflop_s == 20.0


def test_floors_are_bytes_and_operations_over_the_peaks() -> None:
    gpu = replace(load_gpus()["H100"], dram_bandwidth_gb_s=2000.0, fp32_tflop_s=50.0)
    problem = _problem(_tensor("x", "in", "float32", "M", "K"), flops="100000")
    model = workload_bytes(problem, problem.workloads[0])
    assert isclose(memory_floor_us(model, gpu), 4000 / 2000e9 * 1e6)
    assert isclose(compute_floor_us(model, gpu), 100000 / 50e12 * 1e6)


@pytest.mark.parametrize(
    ("dtypes", "tflop_s"),
    [
        (("bfloat16", "bfloat16"), 1070.5),  # the white paper's 989.4 are at 1,830 MHz
        (("float32", "float32"), 1070.5),
        (("bfloat16", "float8_e4m3fn"), 2141.0),
        (("uint8", "float8_e4m3fn"), 2141.0),  # Hopper has nothing narrower
        (("float64", "float64"), 66.9),
    ],
)
def test_products_of_matrices_have_the_floor_of_tensor_cores(
    dtypes: tuple[str, str], tflop_s: float
) -> None:
    x, y = (_tensor(name, "in", one, "M", "K") for name, one in zip("xy", dtypes, strict=True))
    problem = _problem(x, y, flops="M * K", matrix_flops="2000000 * M * M * K")
    model = workload_bytes(problem, problem.workloads[0])
    assert (model.matrix_flop, model.flop) == (2 * 10**11, 2 * 10**11 + 1000)
    floor_us = compute_floor_us(model, load_gpus()["H100"])
    assert isclose(floor_us, 2e11 / tflop_s / 1e6, rel_tol=1e-3)
    line = roofline(model, load_gpus()["H100"])
    assert (line.bound, line.floor_us) == ("compute", floor_us)
    assert isclose(line.attainable_tflop_s, tflop_s, rel_tol=1e-3)


def test_lanes_bind_where_they_have_more_to_do_than_tensor_cores() -> None:
    x = _tensor("x", "in", "bfloat16", "M", "K")
    problem = _problem(x, flops="1000000000 * M", matrix_flops="M")
    model = workload_bytes(problem, problem.workloads[0])
    assert isclose(compute_floor_us(model, load_gpus()["H100"]), 1e11 / 66.9 / 1e6)


def test_products_of_matrices_count_for_nothing_on_an_unknown_architecture() -> None:
    gpu = replace(load_gpus()["H100"], compute_capability=(6, 1))
    problem = _problem(_tensor("x", "in", "bfloat16", "M", "K"), matrix_flops="1000000000 * M")
    model = workload_bytes(problem, problem.workloads[0])
    assert compute_floor_us(model, gpu) == 0
    assert roofline(model, gpu).bound == "memory"


@pytest.mark.parametrize("gpu", load_gpus().values(), ids=lambda gpu: gpu.name)
def test_tensor_cores_of_every_data_sheet_are_known(gpu: GpuSpec) -> None:
    wide = tensor_tflop_s(gpu, 16)
    assert wide is not None
    assert wide > 3.5 * gpu.fp32_tflop_s
    assert (tensor_tflop_s(gpu, 8) or wide) >= wide


def test_a_floor_below_the_empty_kernel_is_called_launch_dominated() -> None:
    gpu = load_gpus()["B200"]
    small = roofline(workload_bytes(*find_kernel("fused_add_rmsnorm_b8xh4096")), gpu)
    large = roofline(workload_bytes(*find_kernel("fused_add_rmsnorm_b1024xh8192")), gpu)
    assert small.is_launch_dominated
    assert small.floor_us == gpu.null_kernel_us > small.memory_floor_us
    assert not large.is_launch_dominated


def test_every_value_is_marked_as_computed() -> None:
    problem, workload = find_kernel("silu_and_mul_b8xh14336")
    model = workload_bytes(problem, workload)
    assert model.kernel == "silu_and_mul_b8xh14336"
    assert model.provenance is Provenance.COMPUTED
    assert roofline(model, load_gpus()["B200"]).provenance is Provenance.COMPUTED
