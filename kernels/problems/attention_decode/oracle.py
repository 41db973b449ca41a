"""Oracle of attention_decode: softmax and weighted sums in fp64, one rounding at the end.

What honest kernels leave before that rounding is a statistic. They compute logits and sums in
fp32, and they round to bfloat16 where tensor cores or a second launch ask for it: each weight once,
before it meets its value, and each partial result of a part of the context once, before parts are
merged. A sum kept in bfloat16 is rounded at every token or tile, and logits in 16 bits err by a
share of themselves, however large they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.kernels.wide_work import slices

Floats = npt.NDArray[np.float64]

# Logits of q times 2^10 are thousands apart: without the largest taken off, exponentials overflow.
_QUERIES = Magnitudes(tiny=2.0**-20, huge=2.0**10)
_KEYS = Magnitudes(tiny=2.0**-4, huge=1.0)
_VALUES = Magnitudes(tiny=2.0**-22, huge=2.0**20)
_DRAWN_ROWS = 1 << 18
"""Rows of a cache that are float32 at once."""
_TOKENS = 512
"""At most so many tokens of a sequence are in fp64 at once."""
_DEVIATIONS = 6.0
"""Slack of an element. Its variance has room for parts that cancel, of which a whole needs less:
its bound takes the slack for more deviations."""
_OF_A_WHOLE = _DEVIATIONS * 1.5**0.5
_U = 2.0**-24
"""The largest relative error of an fp32 rounding to the nearest."""
_BF16 = 2.0**-7 / 24**0.5
"""Standard deviation of the relative error of a bfloat16 rounding, over all mantissas."""


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return the queries and both caches in bfloat16, and the three tables in int32.

    Queries and values have the regime. Keys have blocks of zeros where it asks for them, and
    ordinary values elsewhere, so that logits are as large as the queries make them. Beside outliers
    keys are small: logits lie some ten apart, and several tokens have weight. Among huge ones each
    sequence has a query head whose logits are all far below 0.
    """
    axes = workload.axes
    cache = axes["N"], axes["P"], axes["H"], axes["D"]
    of_keys = {"zero_blocks": "zero_blocks", "outliers": "tiny"}.get(regime, "normal")
    q = axes["B"], axes["H"], axes["G"], axes["D"]
    queries, keys = _drawn(rng, q, regime, _QUERIES), _drawn(rng, cache, of_keys, _KEYS)
    if regime == "huge":
        queries[:, 0, 0] = -np.abs(queries[:, 0, 0])
        keys[:, :, 0] = np.abs(keys[:, :, 0])
    return {
        "q": queries,
        "k_cache": keys,
        "v_cache": _drawn(rng, cache, regime, _VALUES),
        **_tables(rng, axes["B"], axes["N"], axes["P"]),
    }


def _drawn(
    rng: np.random.Generator, shape: tuple[int, ...], regime: str, magnitudes: Magnitudes
) -> npt.NDArray[Any]:
    result = np.empty((int(np.prod(shape[:-1])), shape[-1]), dtype=numpy_dtype("bfloat16"))
    for part in slices(len(result), _DRAWN_ROWS):
        rows = result[part].shape
        amplitudes = draw_amplitudes(rng, rows, regime, magnitudes)
        result[part] = draw_values(rng, rows, amplitudes)
    return result.reshape(shape)


def _tables(
    rng: np.random.Generator, sequences: int, pages: int, page_size: int
) -> dict[str, npt.NDArray[np.int32]]:
    """Return tables of sequences of one page to about twice the mean, with no page left over.

    Raises:
        ValueError: There are fewer pages than sequences.
    """
    if pages < sequences:
        raise ValueError(f"{sequences} sequences need a page each, and there are {pages}")
    shares = np.cumsum(rng.random(sequences))
    ends = np.floor(shares / shares[-1] * (pages - sequences)).astype(np.int64)
    ends[-1] = pages - sequences
    indptr = np.concatenate([[0], ends + np.arange(1, sequences + 1)])
    return {
        "kv_indptr": indptr.astype(np.int32),
        "kv_indices": rng.permutation(pages).astype(np.int32),
        "kv_last_page_len": rng.integers(1, page_size + 1, sequences).astype(np.int32),
    }


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`; the problem has no scalars."""
    del scalars
    q = decode(inputs["q"])
    exact, slack = np.empty_like(q), np.empty_like(q)
    for sequence in range(len(q)):
        exact[sequence], deviation = _attended(q[sequence], _cached(inputs, sequence))
        slack[sequence] = _DEVIATIONS * deviation
    every = np.ones(q.shape, dtype=np.bool_)
    return {
        "out": Expected(
            exact, round_to_bf16(exact), every, slack=slack, slack_deviations=_OF_A_WHOLE
        )
    }


@dataclass(frozen=True)
class _Cached:
    """The tokens of one sequence."""

    keys: npt.NDArray[Any]
    """(pages, page size, heads, 128): the cache, of all sequences."""
    values: npt.NDArray[Any]
    pages: npt.NDArray[np.int32]
    """The pages of this sequence are in the order of their tokens."""
    tokens: int

    def parts(self) -> list[slice]:
        """Return ranges of tokens, each of whole pages but for the last."""
        page_size = self.keys.shape[1]
        return slices(self.tokens, max(1, _TOKENS // page_size) * page_size)

    def taken(self, cache: npt.NDArray[Any], part: slice) -> Floats:
        """Return the rows of these tokens in order, (tokens, heads, 128)."""
        page_size = cache.shape[1]
        pages = self.pages[part.start // page_size : -(-part.stop // page_size)]
        rows = cache[pages].reshape(-1, *cache.shape[2:])
        return decode(rows[: part.stop - part.start])


def _cached(inputs: Arrays, sequence: int) -> _Cached:
    first, end = (int(place) for place in inputs["kv_indptr"][sequence : sequence + 2])
    page_size = inputs["k_cache"].shape[1]
    return _Cached(
        keys=inputs["k_cache"],
        values=inputs["v_cache"],
        pages=inputs["kv_indices"][first:end],
        tokens=(end - first - 1) * page_size + int(inputs["kv_last_page_len"][sequence]),
    )


def _attended(q: Floats, cached: _Cached) -> tuple[Floats, Floats]:
    """Return the results of one sequence, and the standard deviations of honest errors.

    With p the weights, v the values and o = sum(p v), to the variance of an element contribute:

    - p rounded to bfloat16: r^2 sum(p^2 v^2), r the deviation of one rounding;
    - parts of the context rounded to bfloat16 before they are merged: r^2 o^2 where there is one.
      Of several the squares add up to sum(p^2 v^2) in the mean, and to more where large parts
      cancel: o^2 alone refused one of 580 honest results of two parts for a single element;
    - errors e of the logits: sum(p^2 e^2 (v - o)^2), since a weight errs by e of itself, and all
      weights together by sum(p e);
    - sums of n products in fp32, as those of gemm_bf16: u n / 8 |o| of one sign, a deviation of
      u (2 sqrt(n) + n / 12) / 3 of the root of sum(p^2 v^2) of both.

    Args:
        q: (heads, G, 128).
        cached: Keys and values.
    """
    heads, group, _ = q.shape
    p, errors = np.empty((2, heads, group, cached.tokens))
    for part in cached.parts():
        p[..., part], errors[..., part] = _logits(q, cached.taken(cached.keys, part))
    p -= p.max(axis=-1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=-1, keepdims=True)
    squared = np.square(p)
    moved = squared * np.square(errors)
    first, second = np.zeros((2, heads, 2 * group, q.shape[2]))
    for part in cached.parts():
        values = cached.taken(cached.values, part)
        for head in range(heads):
            of_head = values[:, head]
            weights = p[head][:, part], squared[head][:, part]
            both = [np.concatenate([one, moved[head][:, part]]) for one in weights]
            first[head] += both[0] @ of_head
            second[head] += both[1] @ np.square(of_head)
    exact, by_weight = first[:, :group], second[:, :group]
    by_error = second[:, group:] - 2 * exact * first[:, group:]
    by_error += np.square(exact) * moved.sum(axis=-1, keepdims=True)
    n = cached.tokens
    summing = _U * (n / 8 * np.abs(exact) + (2 * n**0.5 + n / 12) / 3 * np.sqrt(by_weight))
    variance = _BF16**2 * (2 * by_weight + np.square(exact)) + np.maximum(by_error, 0)
    return exact, np.sqrt(variance + np.square(summing))


def _logits(q: Floats, keys: Floats) -> tuple[Floats, Floats]:
    """Return logits (heads, G, tokens), and how far fp32 sums of their products may be off.

    That is the slack of gemm_bf16 at K = 128, u (K / 2 |logit| + (2 sqrt(K) + K / 12) S), S the
    root of the sum of the squared products. Scaling and shifting add a few u |logit|, which it has
    room for.
    """
    heads, group, depth = q.shape
    scale = depth**-0.5
    logits, sizes = np.empty((2, heads, group, len(keys)))
    for head in range(heads):
        logits[head] = q[head] @ keys[:, head].T
        sizes[head] = np.square(q[head]) @ np.square(keys[:, head]).T
    logits *= scale
    errors = (2 * depth**0.5 + depth / 12) * scale * np.sqrt(sizes) + depth / 2 * np.abs(logits)
    return logits, _U * errors
