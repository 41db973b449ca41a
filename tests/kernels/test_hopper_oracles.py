"""What all Hopper problems have in common: shapes, regimes, repeatability, magnitudes."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import Expected
from kopt.kernels.problem import TensorSpec, storage_shape
from kopt.kernels.roofline import workload_bytes
from kopt.kernels.rounding import decode
from support.oracle_run import OracleRun, draw, problems

SMALL = {
    "fused_add_rmsnorm_fp8_block_quant": {"B": 5, "H": 384},
    "fused_add_rmsnorm_quant": {"B": 5, "H": 320},
    "fused_add_rmsnorm": {"B": 5, "H": 320},
    "silu_and_mul": {"B": 5, "H": 320},
    "rope_quantize_fp8": {"N": 5, "H": 3},
    "merge_state": {"N": 5, "H": 3, "D": 32},
}
NAMES = list(SMALL)
CASES = [(name, regime) for name in NAMES for regime in REGIMES]


def _outputs(run: OracleRun) -> list[tuple[TensorSpec, Expected]]:
    return [(t, run.outputs[t.name]) for t in run.problem.tensors if t.role != "in"]


def _zero_fraction(array: npt.NDArray[Any]) -> float:
    return 1 - np.count_nonzero(decode(array)) / array.size


@pytest.mark.parametrize(
    ("name", "workloads"),
    [
        ("fused_add_rmsnorm_fp8_block_quant", ["b8xh7168", "b128xh7168", "b1024xh7168"]),
        ("fused_add_rmsnorm_quant", ["b8xh8192", "b128xh8192", "b1024xh8192"]),
        ("fused_add_rmsnorm", ["b8xh4096", "b128xh4096", "b1024xh8192"]),
        ("silu_and_mul", ["b8xh14336", "b128xh14336", "b1024xh14336"]),
        ("rope_quantize_fp8", ["n8xh128", "n128xh128", "n1024xh128"]),
        ("merge_state", ["n8xh64xd128", "n128xh64xd128", "n2048xh64xd128"]),
    ],
)
def test_workloads_are_the_three_that_the_contract_names(name: str, workloads: list[str]) -> None:
    assert [workload.name for workload in problems()[name].workloads] == workloads


@pytest.mark.parametrize("name", NAMES)
def test_a_workloads_name_tells_its_variable_axes(name: str) -> None:
    problem = problems()[name]
    variable = [axis for axis, expression in problem.axes.items() if expression is None]
    for workload in problem.workloads:
        parts = [f"{axis.lower()}{workload.axes[axis]}" for axis in variable]
        assert workload.name == "x".join(parts)


@pytest.mark.parametrize("name", NAMES)
def test_arithmetic_intensity_is_that_of_an_elementwise_kernel(name: str) -> None:
    problem = problems()[name]
    for workload in problem.workloads:
        assert 0.2 < workload_bytes(problem, workload).flop_per_byte < 1.5


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_inputs_have_the_shapes_and_dtypes_of_the_definition(name: str, regime: str) -> None:
    run = draw(name, SMALL[name], regime)
    read = [tensor for tensor in run.problem.tensors if tensor.role != "out"]
    assert set(run.inputs) == {tensor.name for tensor in read}
    for tensor in read:
        array = run.inputs[tensor.name]
        assert array.shape == storage_shape(tensor, run.workload.axes)
        assert array.dtype == numpy_dtype(tensor.dtype)


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_outputs_have_the_shapes_and_dtypes_of_the_definition(name: str, regime: str) -> None:
    run = draw(name, SMALL[name], regime)
    assert set(run.outputs) == {tensor.name for tensor, _ in _outputs(run)}
    for tensor, output in _outputs(run):
        assert output.rounded.shape == storage_shape(tensor, run.workload.axes)
        assert output.rounded.dtype == numpy_dtype(tensor.dtype)
        assert output.written.shape == output.rounded.shape
        assert output.exact.dtype == np.float64
        if output.slack is not None:
            assert output.slack.shape == output.exact.shape


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_one_seed_gives_the_same_inputs_and_another_seed_others(name: str, regime: str) -> None:
    first, again, other = (draw(name, SMALL[name], regime, seed) for seed in (1, 1, 2))
    for tensor, array in first.inputs.items():
        assert array.tobytes() == again.inputs[tensor].tobytes()
    assert any(array.tobytes() != other.inputs[t].tobytes() for t, array in first.inputs.items())


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_inputs_are_not_changed_by_the_oracle(name: str, regime: str) -> None:
    run = draw(name, SMALL[name], regime)
    fresh = draw(name, SMALL[name], regime)
    for tensor, array in run.inputs.items():
        assert array.tobytes() == fresh.inputs[tensor].tobytes()


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_results_hold_no_nan_and_stay_within_two_to_the_fifty(name: str, regime: str) -> None:
    for _, output in _outputs(draw(name, SMALL[name], regime)):
        assert not np.isnan(output.rounded.astype(np.float32)).any()
        finite = np.abs(output.exact[np.isfinite(output.exact)])
        assert finite.max() < 2.0**50


@pytest.mark.parametrize(("name", "regime"), CASES)
def test_results_stay_clear_of_subnormal_fp32_values(name: str, regime: str) -> None:
    for _, output in _outputs(draw(name, SMALL[name], regime)):
        magnitude = np.abs(output.rounded.astype(np.float64))
        assert magnitude[magnitude > 0].min(initial=np.inf) > 2.0**-100


@pytest.mark.parametrize("name", NAMES)
def test_zero_blocks_hold_zeros_and_the_other_values_do_not_vanish(name: str) -> None:
    zeros = draw(name, SMALL[name], "zero_blocks")
    normal = draw(name, SMALL[name], "normal")
    for tensor in zeros.problem.tensors:
        if tensor.role != "out" and tensor.dtype == "bfloat16" and not tensor.static:
            assert 0.02 < _zero_fraction(zeros.inputs[tensor.name]) < 0.9
            assert _zero_fraction(normal.inputs[tensor.name]) < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_regime_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="unknown regime 'odd'"):
        draw(name, SMALL[name], "odd")
