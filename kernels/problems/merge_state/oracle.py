"""Oracle of merge_state: the softmax-weighted mean of two attention states, in fp64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.kernels.row_chunks import for_row_chunks

_MAGNITUDES = Magnitudes(tiny=2.0**-30, huge=2.0**40)
# 2^1000 overflows and 2^-1000 vanishes in fp32: the larger score must be taken off first.
_SCORE_OFFSETS = {"huge": 1000.0, "tiny": -1000.0}
_SCORE_SPREAD = 4.0
_EMPTY_FRACTION = 0.25
_FP32_SLACK = 2.0**-20


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `v_a`, `v_b` (N, H, D) in bfloat16 and `s_a`, `s_b` (N, H) in float32.

    In `zero_blocks` a quarter of the states of either side is empty (score -inf), so that one pair
    in sixteen is empty on both sides. Their vectors are not zero: the weight must take them out.
    """
    axes = workload.axes
    tokens, heads, columns = axes["N"], axes["H"], axes["D"]
    rows = (tokens * heads, columns)
    amplitudes = draw_amplitudes(rng, rows, regime, _MAGNITUDES)
    inputs: dict[str, npt.NDArray[Any]] = {}
    for side in ("a", "b"):
        vectors = draw_values(rng, rows, amplitudes).astype(numpy_dtype("bfloat16"))
        inputs[f"v_{side}"] = vectors.reshape(tokens, heads, columns)
        scores = _SCORE_SPREAD * rng.standard_normal((tokens, heads), dtype=np.float32)
        scores += np.float32(_SCORE_OFFSETS.get(regime, 8.0))
        if regime == "zero_blocks":
            scores[rng.random((tokens, heads)) < _EMPTY_FRACTION] = -np.inf
        inputs[f"s_{side}"] = scores
    if regime == "zero_blocks":
        inputs["s_a"][-1, -1] = inputs["s_b"][-1, -1] = -np.inf
    return {name: inputs[name] for name in ("v_a", "s_a", "v_b", "s_b")}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `v_merged` and `s_merged`; the problem has no scalars."""
    del scalars
    v_a, v_b = inputs["v_a"], inputs["v_b"]
    s_a, s_b = decode(inputs["s_a"]), decode(inputs["s_b"])
    larger = np.maximum(s_a, s_b)
    is_empty = np.isneginf(larger)
    offset = np.where(is_empty, 0.0, larger)
    weight_a, weight_b = np.exp2(s_a - offset), np.exp2(s_b - offset)
    total = np.where(is_empty, 1.0, weight_a + weight_b)
    share_a, share_b = (weight_a / total)[..., None], (weight_b / total)[..., None]
    exact = np.empty(v_a.shape, dtype=np.float64)
    slack = np.empty(v_a.shape, dtype=np.float64)

    def merge(chunk: slice) -> None:
        term_a, term_b = decode(v_a[chunk]) * share_a[chunk], decode(v_b[chunk]) * share_b[chunk]
        np.add(term_a, term_b, out=exact[chunk])
        slack[chunk] = (np.abs(term_a) + np.abs(term_b)) * _FP32_SLACK

    for_row_chunks(v_a.shape[0], v_a[0].size, merge)
    return {
        "v_merged": Expected(
            exact, round_to_bf16(exact), np.ones(exact.shape, dtype=np.bool_), slack=slack
        ),
        "s_merged": _merged_scores(larger, total),
    }


def _merged_scores(larger: npt.NDArray[np.float64], total: npt.NDArray[np.float64]) -> Expected:
    """Return log2 of the sum of both exponentials; -inf where both states are empty.

    Near 0 the logarithm (at most 1) and the larger score cancel, hence the slack.
    """
    exact = np.log2(total) + larger
    finite = np.where(np.isneginf(larger), 0.0, np.abs(larger))
    return Expected(
        exact,
        exact.astype(np.float32),
        np.ones(exact.shape, dtype=np.bool_),
        slack=(finite + 1.0) * _FP32_SLACK,
    )
