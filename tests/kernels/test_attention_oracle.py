"""attention_decode: fp32 with bf16 weights or parts passes its gates, coarser methods do not."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.case_inputs import CASE_REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import round_to_bf16
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.output import Finding
from support.attention_orders import Order
from support.oracle_run import draw, workload_of

pytestmark = pytest.mark.slow  # attention to thousands of tokens in many orders
ATTENTION = load_problems()["attention_decode"]
Axes = Mapping[str, int]

SMALL = {"B": 3, "H": 2, "G": 4, "N": 15, "P": 16}
ONE_LONG = {"B": 1, "H": 1, "G": 4, "N": 256, "P": 16}
SHAPES: dict[str, dict[str, int]] = {
    "small": SMALL,
    "pages of 64, no group": {"B": 2, "H": 2, "G": 1, "N": 4, "P": 64},
    "7 query heads a head": {"B": 2, "H": 1, "G": 7, "N": 12, "P": 16},
    "one of 300": {"B": 1, "H": 2, "G": 4, "N": 19, "P": 16},
    "one of 4096": ONE_LONG,
}
BF16 = "bfloat16"
HONEST = {
    "a token at a time": Order(tile=1),
    "tiles of 16": Order(),
    "all at once": Order(tile=1 << 20),
    "weights in bf16": Order(tile=64, weights=BF16),
    "weights in bf16, their own sum": Order(tile=64, weights=BF16, sums_rounded_weights=True),
    "2 parts": Order(splits=2),
    "9 parts, weights in bf16": Order(splits=9, weights=BF16),
    "2 parts in bf16": Order(splits=2, parts=BF16),
    "5 parts in bf16, weights in bf16": Order(splits=5, parts=BF16, weights=BF16),
    "33 parts in bf16, weights in bf16": Order(splits=33, parts=BF16, weights=BF16),
}
SUMS_IN_BF16 = {
    "a token at a time": Order(tile=1, sums=BF16),
    "tiles of 16": Order(tile=16, sums=BF16, weights=BF16),
}


def _case(axes: Axes, regime: str = "normal", seed: int = 5) -> CaseData:
    return make_case_data(CaseKey(ATTENTION, workload_of(ATTENTION, dict(axes)), seed, regime))


def _finding(data: CaseData, order: Order) -> Finding | None:
    return _judged(data, order.attend(data.inputs))


def _judged(data: CaseData, results: npt.NDArray[np.float64]) -> Finding | None:
    return judge(data, {"out": round_to_bf16(results)}, poison=0xFF).finding


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", HONEST)
def test_honest_orders_pass_on_ordinary_inputs(order: str, shape: str) -> None:
    assert _finding(_case(SHAPES[shape]), HONEST[order]) is None


@pytest.mark.parametrize("regime", CASE_REGIMES)
@pytest.mark.parametrize("order", HONEST)
def test_honest_orders_pass_on_inputs_of_every_regime(order: str, regime: str) -> None:
    for seed in (1, 2):
        assert _finding(_case(SMALL, regime, seed), HONEST[order]) is None


@pytest.mark.parametrize("shape", ["small", "one of 300", "one of 4096"])
def test_sums_kept_in_bf16_from_token_to_token_are_refused(shape: str) -> None:
    assert _finding(_case(SHAPES[shape]), SUMS_IN_BF16["a token at a time"]) is not None


def test_sums_kept_in_bf16_from_tile_to_tile_are_refused_over_a_long_context() -> None:
    assert _finding(_case(ONE_LONG), SUMS_IN_BF16["tiles of 16"]) is not None


@pytest.mark.parametrize("regime", ["tiny", "huge"])
def test_sums_kept_in_fp16_are_refused(regime: str) -> None:
    assert _finding(_case(SMALL, regime), Order(sums="float16")) is not None


@pytest.mark.parametrize("dtype", [BF16, "float16"])
@pytest.mark.parametrize("regime", ["outliers", "mixed", "huge", "assorted"])
def test_logits_in_16_bits_are_refused_where_they_are_large(regime: str, dtype: str) -> None:
    axes = SMALL | {"N": 3 * 19}
    assert _finding(_case(axes, regime), Order(logits=dtype)) is not None


@pytest.mark.parametrize("regime", ["mixed", "huge"])
def test_exponentials_without_the_largest_logit_taken_off_are_refused(regime: str) -> None:
    finding = _finding(_case(SMALL, regime), Order(takes_largest_off=False))
    assert finding is not None
    assert finding.gate == "finite"


def test_a_largest_logit_that_is_never_below_0_is_refused() -> None:
    for seed in range(8):
        finding = _finding(_case(SMALL, "huge", seed), Order(least_largest=0.0))
        assert finding is not None
        assert finding.gate == "finite"


def _without_last_page(inputs: dict[str, npt.NDArray[Any]]) -> None:
    ends = inputs["kv_indptr"][1:]
    inputs["kv_last_page_len"] = np.full_like(ends, inputs["k_cache"].shape[1])
    inputs["kv_indptr"] = np.concatenate([[0], np.cumsum(np.diff(inputs["kv_indptr"]) - 1)])
    kept = np.delete(inputs["kv_indices"], ends - 1)
    inputs["kv_indices"] = kept


def _with_a_whole_last_page(inputs: dict[str, npt.NDArray[Any]]) -> None:
    inputs["kv_last_page_len"] = np.full_like(
        inputs["kv_last_page_len"], inputs["k_cache"].shape[1]
    )


def _with_a_page_of_another(inputs: dict[str, npt.NDArray[Any]]) -> None:
    inputs["kv_indices"] = np.concatenate([inputs["kv_indices"][1:2], inputs["kv_indices"][1:]])


def _with_pages_in_order(inputs: dict[str, npt.NDArray[Any]]) -> None:
    inputs["kv_indices"] = np.sort(inputs["kv_indices"])


def _with_lengths_alike(inputs: dict[str, npt.NDArray[Any]]) -> None:
    sequences, pages = len(inputs["kv_last_page_len"]), len(inputs["kv_indices"])
    inputs["kv_indptr"] = np.arange(sequences + 1) * (pages // sequences)


@pytest.mark.parametrize(
    ("changed", "context"),
    [
        (_without_last_page, 600),
        (_with_a_whole_last_page, 600),
        (_with_a_page_of_another, 600),
        (_with_pages_in_order, 600),
        (_with_lengths_alike, 600),
        (_with_a_page_of_another, 8192),
        (_with_a_whole_last_page, 8192),
    ],
)
def test_attention_to_other_tokens_is_refused(
    changed: Callable[[dict[str, npt.NDArray[Any]]], None], context: int
) -> None:
    data = _case(SMALL | {"N": 3 * context // 16, "H": 1})
    inputs = dict(data.inputs)
    changed(inputs)
    assert _judged(data, Order(tile=1 << 20).attend(inputs)) is not None


def test_each_query_head_attends_to_its_own_head_of_keys_and_values() -> None:
    data = _case(SMALL)
    swapped = {
        name: array[:, :, ::-1] if name.endswith("cache") else array
        for name, array in data.inputs.items()
    }
    assert _judged(data, Order().attend(swapped)) is not None


def test_sequences_have_different_lengths_that_use_every_page_once() -> None:
    inputs = draw("attention_decode", {"B": 32, "H": 1, "G": 1, "N": 2048, "P": 16}).inputs
    indptr = inputs["kv_indptr"]
    pages = np.diff(indptr)
    assert indptr[0] == 0
    assert indptr[-1] == 32 * 64
    assert pages.min() >= 1
    assert pages.max() > 1.5 * 64
    assert len(set(pages.tolist())) > 16
    assert sorted(inputs["kv_indices"].tolist()) == list(range(32 * 64))
    assert (np.diff(inputs["kv_indices"]) != 1).mean() > 0.9
    assert set(inputs["kv_last_page_len"].tolist()) <= set(range(1, 17))


def test_as_many_sequences_as_pages_have_one_page_each() -> None:
    inputs = draw("attention_decode", {"B": 5, "H": 1, "G": 1, "N": 5, "P": 16}).inputs
    assert inputs["kv_indptr"].tolist() == [0, 1, 2, 3, 4, 5]


def test_tokens_beyond_those_that_are_taken_at_once_are_all_counted() -> None:
    run = draw("attention_decode", {"B": 1, "H": 1, "G": 2, "N": 32, "P": 48})
    exact = Order(tile=1 << 20).attend(run.inputs)
    np.testing.assert_allclose(run.outputs["out"].exact, exact, rtol=1e-3, atol=1e-5)


def test_slots_behind_the_last_token_hold_nan_and_are_no_part_of_the_result() -> None:
    data = _case(SMALL, "edges")
    last = SMALL["P"] - data.inputs["kv_last_page_len"]
    for name in ("k_cache", "v_cache"):
        odd = ~np.isfinite(data.inputs[name].astype(np.float32))
        assert odd.any(axis=(2, 3)).sum() == last.sum()
    for wrong in ("q", "out"):
        values = data.inputs.get(wrong, data.references["out"].exact)
        assert np.isfinite(values.astype(np.float32)).all()


def test_the_oracle_reads_nothing_of_other_sequences() -> None:
    run = draw("attention_decode", SMALL)
    first, end = run.inputs["kv_indptr"][:2]
    pages = run.inputs["kv_indices"]
    others = np.concatenate([pages[:first], pages[end:]])
    for name in ("k_cache", "v_cache"):
        run.inputs[name][others] = np.nan
    again = load_oracle(ATTENTION).expected(run.inputs, {})["out"].exact
    np.testing.assert_array_equal(again[0], run.outputs["out"].exact[0])
