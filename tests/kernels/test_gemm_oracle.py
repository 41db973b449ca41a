"""gemm_bf16: sums in fp32 pass its gates in any order, sums and partial sums in 16 bits do not."""

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.case_inputs import CASE_REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.output import Finding
from kopt.tools.check.reference import make_reference
from support.gemm_orders import (
    by_tensor_cores,
    in_pairs,
    in_parts,
    narrow_sums,
    one_after_the_other,
)

pytestmark = pytest.mark.slow  # products of whole matrices in many orders
GEMM = load_problems()["gemm_bf16"]
DEPTHS = sorted({workload.axes["K"] for workload in GEMM.workloads})
Sums = npt.NDArray[np.float64]
Order = Callable[[Sums, Sums], Sums]

HONEST: dict[str, Order] = {
    "one after the other": one_after_the_other,
    "the last first": lambda x, w: one_after_the_other(x[:, ::-1], w[:, ::-1]),
    "in pairs": in_pairs,
    "7 parts": lambda x, w: in_parts(x, w, 7),
    "tensor cores": by_tensor_cores,
    "tensor cores, 16 products": lambda x, w: by_tensor_cores(x, w, 16),
}
DISHONEST: dict[str, Order] = {
    "fp16 sums": lambda x, w: narrow_sums(x, w, "float16", 1),
    "fp16 sums of 16 products": lambda x, w: narrow_sums(x, w, "float16", 16),
    "bf16 sums": lambda x, w: narrow_sums(x, w, "bfloat16", 1),
    "bf16 sums of 64 products": lambda x, w: narrow_sums(x, w, "bfloat16", 64),
    "2 parts in bf16": lambda x, w: in_parts(x, w, 2, "bfloat16"),
    "8 parts in bf16": lambda x, w: in_parts(x, w, 8, "bfloat16"),
    "8 parts in fp16": lambda x, w: in_parts(x, w, 8, "float16"),
    "a product less": lambda x, w: x[:, 1:] @ w[:, 1:].T,
}


def _case(depth: int, regime: str = "normal", rows: int = 4, columns: int = 64) -> CaseData:
    axes = {"M": rows, "N": columns, "K": depth}
    return make_case_data(CaseKey(GEMM, Workload(name="drawn", axes=axes), 5, regime))


def _finding(data: CaseData, order: Order) -> Finding | None:
    sums = order(decode(data.inputs["x"]), decode(data.inputs["weight"]))
    return judge(data, {"out": round_to_bf16(sums)}, poison=0xFF).finding


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("order", HONEST)
def test_fp32_sums_of_ordinary_values_pass_in_any_order(order: str, depth: int) -> None:
    assert _finding(_case(depth), HONEST[order]) is None


@pytest.mark.parametrize("regime", CASE_REGIMES)
@pytest.mark.parametrize("order", HONEST)
def test_fp32_sums_pass_on_inputs_of_every_regime(order: str, regime: str) -> None:
    assert _finding(_case(1024, regime, rows=16), HONEST[order]) is None


@pytest.mark.parametrize("order", HONEST)
def test_fp32_sums_of_terms_of_one_sign_pass(order: str) -> None:
    data = _case(14336)
    inputs = {name: np.abs(array) for name, array in data.inputs.items()}
    assert _finding(_of_inputs(inputs), HONEST[order]) is None


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("order", DISHONEST)
def test_sums_and_partial_sums_in_16_bits_are_refused(order: str, depth: int) -> None:
    finding = _finding(_case(depth), DISHONEST[order])
    assert finding is not None
    assert finding.gate in ("one_rounding", "finite")


@pytest.mark.parametrize(
    "order", ["fp16 sums of 16 products", "2 parts in bf16", "8 parts in bf16"]
)
def test_sums_in_16_bits_of_terms_of_one_sign_are_refused(order: str) -> None:
    data = _of_inputs({name: np.abs(array) for name, array in _case(4096).inputs.items()})
    finding = _finding(data, DISHONEST[order])
    assert finding is not None
    assert finding.gate == "one_rounding"
    norms_may = replace(data.references["out"], one_rounding=False)
    assert _finding(CaseData(data.inputs, {"out": norms_may}), DISHONEST[order]) is None


def _cut_to_1(weights: Sums) -> Sums:
    return np.clip(weights, -1, 1)


def _as_fp16(weights: Sums) -> Sums:
    return np.clip(weights, -65504, 65504).astype(np.float16).astype(np.float64)


@pytest.mark.parametrize("narrowed", [_cut_to_1, _as_fp16])
def test_weights_that_are_taken_in_another_range_are_refused(
    narrowed: Callable[[Sums], Sums],
) -> None:
    found = [
        _finding(_case(1024, regime), lambda x, w: x @ narrowed(w).T) for regime in CASE_REGIMES
    ]
    assert any(found)


def test_rows_and_columns_are_those_of_the_linear_layer() -> None:
    data = _case(128, rows=3, columns=5)
    x, weight = decode(data.inputs["x"]), decode(data.inputs["weight"])
    exact = data.references["out"].exact.reshape(3, 5)
    for row, column in ((0, 0), (2, 1), (1, 4)):
        assert exact[row, column] == pytest.approx(np.dot(x[row], weight[column]), rel=1e-6)


def test_more_rows_and_columns_than_are_taken_at_once_are_all_computed() -> None:
    data = _case(16, rows=1030, columns=1100)
    exact = data.references["out"].exact.reshape(1030, 1100)
    right = decode(data.inputs["x"]) @ decode(data.inputs["weight"]).T
    np.testing.assert_allclose(exact, right, rtol=1e-6, atol=1e-6)


def test_every_workload_has_rows_of_whole_16_byte_pieces_along_k() -> None:
    assert all(workload.axes["K"] % 8 == 0 for workload in GEMM.workloads)


@pytest.mark.slow  # torch is loaded
def test_torch_multiplies_into_the_given_output_and_adds_no_parts_in_bfloat16() -> None:
    torch: Any = import_module("torch")
    data = _case(1024, rows=16)
    given = data.inputs | {"out": np.zeros((16, 64), dtype=data.inputs["x"].dtype)}
    tensors = {
        name: torch.from_numpy(np.array(array).view(np.int16)).view(torch.bfloat16)
        for name, array in given.items()
    }
    launch = load_baseline(GEMM, GEMM.baselines[0]).bind(tensors, {}, False)
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    launch()
    assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    out = tensors["out"].view(torch.int16).numpy().view(given["out"].dtype)
    assert judge(data, {"out": out}, poison=0xFF).finding is None


def _of_inputs(inputs: dict[str, npt.NDArray[Any]]) -> CaseData:
    (expected,) = load_oracle(GEMM).expected(inputs, {}).values()
    return CaseData(inputs, {"out": make_reference(GEMM, "out", expected)})
