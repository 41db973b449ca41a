"""gemm_fp8_block_scaled: blocks summed by tensor cores pass, long sums and wrong scales do not."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.output import Finding
from kopt.tools.check.reference import make_reference
from support.fp8_orders import (
    Floats,
    ScaledCodes,
    in_parts,
    never_promoted,
    operands,
    promoted,
    unpromoted_blocks,
)
from support.oracle_run import workload_of

pytestmark = pytest.mark.slow  # products of whole matrices in many orders
GEMM = load_problems()["gemm_fp8_block_scaled"]
DEPTHS = sorted({workload.axes["K"] for workload in GEMM.workloads})
LONG = [depth for depth in DEPTHS if depth > 1024]
EXACT_BITS = 50
Order = Callable[[ScaledCodes], Floats]

HONEST: dict[str, Order] = {
    "tensor cores, 32 products": promoted,
    "tensor cores, 16 products": lambda c: promoted(c, 16),
    "tensor cores, 15 bits": lambda c: promoted(c, bits=15),
    "fp32 arithmetic": lambda c: promoted(c, 1, 24),
    "exact blocks": lambda c: promoted(c, 128, EXACT_BITS),
    "4 parts": lambda c: in_parts(c, 4),
}


def _in_bf16(values: Floats) -> Floats:
    return decode(round_to_bf16(values))


def _as_powers_of_two(values: Floats) -> Floats:
    powers: Floats = np.exp2(np.ceil(np.log2(values)))
    return powers


def _shifted(values: Floats) -> Floats:
    return np.roll(values, 1, axis=0)


def _in_other_order(values: Floats) -> Floats:
    """Return scales as whoever takes their two axes for one another reads them."""
    return np.ascontiguousarray(values.T).reshape(values.shape)


def _of_x(change: Callable[[Floats], Floats]) -> Order:
    return lambda c: promoted(replace(c, x_scale=change(c.x_scale)))


def _of_weight(change: Callable[[Floats], Floats]) -> Order:
    return lambda c: promoted(replace(c, weight_scale=change(c.weight_scale)))


WRONG_SCALES: dict[str, Order] = {
    "x in bf16": _of_x(_in_bf16),
    "weight in bf16": _of_weight(_in_bf16),
    "x in powers of two": _of_x(_as_powers_of_two),
    "weight in powers of two": _of_weight(_as_powers_of_two),
    "x of the block before": _of_x(_shifted),
    "weight of the block before": _of_weight(_shifted),
    "x of the row before": _of_x(lambda scales: np.roll(scales, 1, axis=1)),
    "weight of the 128 columns before": _of_weight(lambda scales: np.roll(scales, 128, axis=1)),
    "x transposed": _of_x(_in_other_order),
    "no scales of x": _of_x(np.ones_like),
}
NARROW: dict[str, Order] = {
    "sums in bf16": lambda c: promoted(c, dtype="bfloat16"),
    "2 parts in bf16": lambda c: in_parts(c, 2, "bfloat16"),
    "4 parts in bf16": lambda c: in_parts(c, 4, "bfloat16"),
    "a block less": lambda c: promoted(_without_first_block(c)),
}


def _without_first_block(c: ScaledCodes) -> ScaledCodes:
    return ScaledCodes(c.x[:, 128:], c.weight[:, 128:], c.x_scale[1:], c.weight_scale[1:])


@lru_cache(maxsize=16)
def _case(depth: int, regime: str = "normal", rows: int = 5, columns: int = 320) -> CaseData:
    workload = workload_of(GEMM, {"M": rows, "N": columns, "K": depth})
    return make_case_data(CaseKey(GEMM, workload, 5, regime))


def _finding(data: CaseData, order: Order) -> Finding | None:
    sums = order(operands(data.inputs))
    return judge(data, {"out": round_to_bf16(sums)}, poison=0xFF).finding


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("order", HONEST)
def test_blocks_that_are_added_in_fp32_pass(order: str, depth: int) -> None:
    rows, columns = (5, 320) if "arithmetic" not in order else (2, 160)
    assert _finding(_case(depth, rows=rows, columns=columns), HONEST[order]) is None


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("order", HONEST)
def test_blocks_that_are_added_in_fp32_pass_on_inputs_of_every_regime(
    order: str, regime: str
) -> None:
    assert _finding(_case(1024, regime, rows=16), HONEST[order]) is None


@pytest.mark.parametrize("depth", [256, 2048])
@pytest.mark.parametrize("order", HONEST)
def test_sums_of_terms_of_one_sign_pass(order: str, depth: int) -> None:
    inputs = dict(_case(depth, rows=2, columns=160).inputs)
    for name in ("x", "weight"):
        inputs[name] = np.abs(inputs[name].astype(np.float32)).astype(inputs[name].dtype)
    assert _finding(_of_inputs(inputs), HONEST[order]) is None


@pytest.mark.parametrize("depth", LONG)
def test_sums_that_stay_in_the_tensor_cores_registers_are_refused(depth: int) -> None:
    finding = _finding(_case(depth), never_promoted)
    assert finding is not None
    assert finding.gate == "one_rounding"


@pytest.mark.parametrize("depth", [7168, 16384])
def test_sums_that_are_promoted_every_2048_products_are_refused(depth: int) -> None:
    finding = _finding(_case(depth), lambda c: unpromoted_blocks(c, 16))
    assert finding is not None


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("order", WRONG_SCALES)
def test_wrong_and_rounded_scales_are_refused(order: str, depth: int) -> None:
    assert _finding(_case(depth), WRONG_SCALES[order]) is not None


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("order", NARROW)
def test_partial_sums_in_bf16_are_refused(order: str, depth: int) -> None:
    finding = _finding(_case(depth), NARROW[order])
    assert finding is not None
    assert finding.gate == "one_rounding"


def test_an_element_is_the_sum_of_scaled_blocks() -> None:
    data = _case(256, rows=3, columns=200)
    x, weight = decode(data.inputs["x"]), decode(data.inputs["weight"])
    of_x, of_weight = data.inputs["x_scale"], data.inputs["weight_scale"]
    exact = data.references["out"].exact.reshape(3, 200)
    assert of_x.shape == (2, 4) and of_weight.shape == (2, 2)
    for row, column in ((0, 0), (2, 127), (1, 128), (2, 199)):
        sums = [x[row, k : k + 128] @ weight[column, k : k + 128] for k in (0, 128)]
        right = sum(sums * of_x[:, row].astype(np.float64) * of_weight[column // 128])
        assert exact[row, column] == pytest.approx(right, rel=1e-6)


def test_more_rows_and_columns_than_are_taken_at_once_are_all_computed() -> None:
    data = _case(128, rows=1030, columns=1100)
    exact = data.references["out"].exact.reshape(1030, 1100)
    codes = operands(data.inputs)
    right = (codes.x @ codes.weight.T) * codes.x_scale.T * codes.weight_scale
    np.testing.assert_allclose(exact, right, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("regime", REGIMES)
def test_codes_fill_their_range_and_a_scale_is_that_of_its_block(regime: str) -> None:
    inputs = _case(512, regime, rows=6, columns=300).inputs
    for name, rows in (("x", 1), ("weight", 128)):
        codes = np.abs(decode(inputs[name])).reshape(-1, 4, 128).max(axis=2)
        largest = np.maximum.reduceat(codes, np.arange(0, len(codes), rows), axis=0)
        assert np.isin(largest, [448, 0]).all()
        assert (largest == 448).any()
    scales = inputs["x_scale"][:, :6], inputs["weight_scale"]
    assert all((one > 0).all() and np.isfinite(one).all() for one in scales)
    assert (inputs["x_scale"][:, 6:] == 2.0**20).all()


def test_blocks_of_one_operand_have_scales_of_their_own() -> None:
    inputs = _case(2048, columns=2048).inputs
    for scales in (inputs["x_scale"][:, :5], inputs["weight_scale"]):
        assert np.unique(scales).size == scales.size
        assert scales.max() > 2 * scales.min()


@pytest.mark.slow  # torch is loaded
@pytest.mark.parametrize("name", ["torch", "deep_gemm"])
def test_libraries_are_given_the_scales_in_place_in_their_own_layout(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = import_module("torch")
    found: list[tuple[Any, Any]] = []

    def of_torch(x: Any, columns: Any, x_scale: Any, weight_scale: Any, **options: Any) -> None:
        del x, columns, options
        found.append((x_scale, weight_scale.t()))

    def of_deep_gemm(x: tuple[Any, Any], weight: tuple[Any, Any], out: Any) -> None:
        del out
        found.append((x[1], weight[1]))

    monkeypatch.setattr(torch, "_scaled_mm", of_torch)
    monkeypatch.setitem(sys.modules, "deep_gemm", SimpleNamespace(fp8_gemm_nt=of_deep_gemm))
    given = {key: _torch_of(array) for key, array in _case(512, rows=8).inputs.items()}
    given["out"] = torch.empty(8, 320, dtype=torch.bfloat16)
    (entry,) = (one for one in GEMM.baselines if one.name == name)
    load_baseline(GEMM, entry).bind(given, {}, False)()
    ((x_scale, weight_scale),) = found
    assert (x_scale.shape, x_scale.stride()) == ((8, 4), (1, 8))
    assert x_scale.data_ptr() == given["x_scale"].data_ptr()
    assert weight_scale.shape == (3, 4) and weight_scale.is_contiguous()
    assert weight_scale.data_ptr() == given["weight_scale"].data_ptr()


def _torch_of(array: npt.NDArray[Any]) -> Any:
    torch: Any = import_module("torch")
    if array.dtype == numpy_dtype("float8_e4m3fn"):
        return torch.from_numpy(np.array(array).view(np.uint8)).view(torch.float8_e4m3fn)
    return torch.from_numpy(np.array(array))


def _of_inputs(inputs: dict[str, npt.NDArray[Any]]) -> CaseData:
    (expected,) = load_oracle(GEMM).expected(inputs, {}).values()
    return CaseData(inputs, {"out": make_reference(GEMM, "out", expected)})
