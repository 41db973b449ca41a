"""attention_prefill: fp32 with bf16 weights passes its gates, coarser methods and masks do not."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.case_inputs import CASE_REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.judge import judge
from kopt.tools.check.judged_rows import FEWEST_ROWS, judged_count
from kopt.tools.check.output import Finding
from support.attention_orders import Order
from support.oracle_run import draw, workload_of
from support.prefill_orders import attend_causally

pytestmark = pytest.mark.slow  # hundreds of tokens in many orders, each attending to all before

PREFILL = load_problems()["attention_prefill"]
Axes = Mapping[str, int]
Inputs = dict[str, npt.NDArray[Any]]

SMALL = {"I": 4, "H": 2, "G": 2, "N": 170}
OF_FOUR_HEADS = {"I": 3, "H": 1, "G": 4, "N": 140}
ONE = {"I": 2, "H": 1, "G": 1, "N": 300}
LONG = {"I": 2, "H": 1, "G": 1, "N": 1024}
BF16 = "bfloat16"
HONEST = {
    "a token at a time": Order(tile=1),
    "all at once": Order(tile=1 << 20),
    "tiles of 64, weights in bf16": Order(tile=64, weights=BF16),
    "tiles of 128, weights in bf16, their own sum": Order(
        tile=128, weights=BF16, sums_rounded_weights=True
    ),
    "5 parts in bf16, weights in bf16": Order(splits=5, parts=BF16, weights=BF16),
}


def _case(axes: Axes, regime: str = "normal", seed: int = 5) -> CaseData:
    return make_case_data(CaseKey(PREFILL, workload_of(PREFILL, dict(axes)), seed, regime))


def _judged(data: CaseData, results: npt.NDArray[np.float64]) -> Finding | None:
    return judge(data, {"out": round_to_bf16(results)}, poison=0xFF).finding


def _finding(data: CaseData, order: Order) -> Finding | None:
    return _judged(data, attend_causally(order, data.inputs))


@pytest.mark.parametrize("axes", [OF_FOUR_HEADS, ONE], ids=["of four heads", "one"])
@pytest.mark.parametrize("order", HONEST)
def test_honest_orders_pass_on_ordinary_inputs(order: str, axes: Axes) -> None:
    assert _finding(_case(axes), HONEST[order]) is None


def test_tiles_of_a_long_sequence_pass() -> None:
    assert _finding(_case(LONG), Order(tile=128, weights=BF16)) is None


@pytest.mark.parametrize("regime", CASE_REGIMES)
@pytest.mark.parametrize("order", HONEST)
def test_honest_orders_pass_on_inputs_of_every_regime(order: str, regime: str) -> None:
    for seed in (1, 2):
        assert _finding(_case(SMALL, regime, seed), HONEST[order]) is None


def test_sums_kept_in_bf16_from_tile_to_tile_are_refused() -> None:
    assert _finding(_case(ONE), Order(tile=16, sums=BF16, weights=BF16)) is not None


@pytest.mark.parametrize("tile", [16, 128])
@pytest.mark.parametrize("regime", ["tiny", "huge"])
def test_sums_kept_in_fp16_are_refused(regime: str, tile: int) -> None:
    data = _case(SMALL, regime)
    assert _finding(data, Order(tile=tile, sums="float16", weights=BF16)) is not None


@pytest.mark.parametrize("dtype", [BF16, "float16"])
@pytest.mark.parametrize("regime", ["outliers", "mixed", "huge", "assorted"])
def test_logits_in_16_bits_are_refused_where_they_are_large(regime: str, dtype: str) -> None:
    assert _finding(_case(SMALL, regime), Order(logits=dtype)) is not None


@pytest.mark.parametrize("regime", ["mixed", "huge"])
def test_exponentials_without_the_largest_logit_taken_off_are_refused(regime: str) -> None:
    finding = _finding(_case(SMALL, regime), Order(takes_largest_off=False))
    assert finding is not None
    assert finding.gate == "finite"


def test_a_largest_logit_that_is_never_below_0_is_refused() -> None:
    finding = _finding(_case(SMALL, "huge"), Order(least_largest=0.0))
    assert finding is not None
    assert finding.gate == "finite"


@pytest.mark.parametrize("axes", [SMALL, ONE, LONG], ids=["small", "one", "long"])
@pytest.mark.parametrize("sees", [1 << 20, 1, -1], ids=["no mask", "one more", "one less"])
def test_another_mask_is_refused(sees: int, axes: Axes) -> None:
    data = _case(axes)
    results = attend_causally(Order(tile=1 << 20), data.inputs, sees)
    assert _judged(data, results) is not None


def _as_one_sequence(inputs: Inputs) -> None:
    inputs["indptr"] = inputs["indptr"][[0, -1]]


def _with_lengths_alike(inputs: Inputs) -> None:
    tokens, sequences = len(inputs["q"]), len(inputs["indptr"]) - 1
    inputs["indptr"] = np.arange(sequences + 1) * tokens // sequences


def _with_heads_swapped(inputs: Inputs) -> None:
    inputs["k"], inputs["v"] = inputs["k"][:, ::-1], inputs["v"][:, ::-1]


@pytest.mark.parametrize("changed", [_as_one_sequence, _with_lengths_alike, _with_heads_swapped])
def test_attention_to_other_tokens_is_refused(changed: Callable[[Inputs], None]) -> None:
    data = _case(SMALL)
    inputs = dict(data.inputs)
    changed(inputs)
    assert _judged(data, attend_causally(Order(tile=1 << 20), inputs)) is not None


def _lengths(sequences: int, tokens: int, longest: int, seed: int = 1) -> list[int]:
    axes = {"I": sequences + 1, "H": 1, "G": 1, "N": tokens, "B": sequences, "D": 128}
    workload = Workload(name="drawn", axes=axes, scalars={"longest": longest})
    oracle = load_oracle(PREFILL)
    inputs = oracle.make_inputs(workload, np.random.default_rng(seed), "normal")
    lengths: list[int] = np.diff(inputs["indptr"]).tolist()
    return lengths


def test_sequences_have_different_lengths_within_the_longest_and_use_every_token() -> None:
    found = [_lengths(32, 1024, 50, seed) for seed in range(4)]
    assert {sum(lengths) for lengths in found} == {1024}
    spread = {length for lengths in found for length in lengths}
    assert min(spread) >= 1
    assert 45 < max(spread) <= 50
    assert len(spread) > 24


def test_as_many_tokens_as_fit_give_sequences_of_one_length() -> None:
    assert _lengths(4, 280, 70) == [70, 70, 70, 70]


def test_as_many_sequences_as_tokens_have_one_each() -> None:
    assert _lengths(5, 5, 70) == [1, 1, 1, 1, 1]


@pytest.mark.parametrize(("sequences", "tokens"), [(3, 2), (3, 301), (0, 0)])
def test_lengths_that_no_sequences_can_have_are_refused(sequences: int, tokens: int) -> None:
    with pytest.raises(ValueError, match=f"{sequences} sequences of 1 to 100 tokens cannot"):
        _lengths(sequences, tokens, 100)


def test_query_tokens_beyond_those_that_are_computed_at_once_see_all_that_count() -> None:
    run = draw("attention_prefill", {"I": 2, "H": 1, "G": 2, "N": 333})
    q, k, v = (decode(run.inputs[name]) for name in "qkv")
    logits = np.einsum("igd,jd->gij", q[:, 0], k[:, 0]) / 128**0.5
    logits[:, np.triu(np.ones((333, 333), dtype=bool), 1)] = -np.inf
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    exact = np.einsum("gij,jd->igd", weights, v[:, 0])
    np.testing.assert_allclose(run.outputs["out"].exact[:, 0], exact, rtol=1e-12, atol=1e-13)


def test_the_first_token_of_a_sequence_gives_its_own_value() -> None:
    run = draw("attention_prefill", SMALL)
    first = run.inputs["indptr"][:-1]
    values = decode(run.inputs["v"])[first][:, :, None]
    exact = run.outputs["out"].exact[first]
    np.testing.assert_array_equal(exact, np.broadcast_to(values, exact.shape))


def test_heads_that_are_judged_alone_have_the_results_that_they_have_among_all() -> None:
    run = draw("attention_prefill", {**SMALL, "H": 3})
    of_some = {
        name: array if name == "indptr" else array[:, [0, 2]] for name, array in run.inputs.items()
    }
    alone, among_all = load_oracle(PREFILL).expected(of_some, {})["out"], run.outputs["out"]
    np.testing.assert_array_equal(alone.exact, among_all.exact[:, [0, 2]])
    assert alone.slack is not None
    assert among_all.slack is not None
    np.testing.assert_array_equal(alone.slack, among_all.slack[:, [0, 2]])


def test_three_heads_are_judged_at_each_shape_that_is_timed_and_all_at_the_others() -> None:
    counts = {one.name: judged_count(PREFILL, one) for one in PREFILL.workloads}
    timed = {one.name for one in PREFILL.workloads if one.use == "time"}
    assert counts == {name: FEWEST_ROWS if name in timed else None for name in counts}


def test_the_oracle_reads_nothing_of_other_sequences() -> None:
    run = draw("attention_prefill", SMALL)
    first, end = run.inputs["indptr"][:2]
    for name in "kv":
        run.inputs[name][end:] = np.nan
    again = load_oracle(PREFILL).expected(run.inputs, {})["out"].exact
    np.testing.assert_array_equal(again[first:end], run.outputs["out"].exact[first:end])
