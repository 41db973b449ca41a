"""Oracle of attention_prefill: softmax and weighted sums in fp64, one rounding at the end.

What honest kernels leave before that rounding is a statistic, by the formula of attention_decode:
they compute logits and sums in fp32, and they round to bfloat16 each weight, before it meets its
value on tensor cores, and at most once the result of a part of the context, before parts are
merged. Sums in 16 bits are rounded at every tile, and logits in 16 bits err by a share of
themselves, however large they are.

A long sequence is computed some query tokens at a time, by several threads. Results are in fp64;
of errors a percent matters, so that their sums are in fp32.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.kernels.wide_work import run_wide, slices

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

# Logits of q times 2^10 are thousands apart: without the largest taken off, exponentials overflow.
_QUERIES = Magnitudes(tiny=2.0**-20, huge=2.0**10)
_KEYS = Magnitudes(tiny=2.0**-4, huge=1.0)
_VALUES = Magnitudes(tiny=2.0**-22, huge=2.0**20)
_LONGEST = 1 << 20
"""The problem's own value of `longest`."""
_LOGITS = 1 << 22
"""At most so many logits are in fp64 at once."""
_TOKENS = 128
"""At most so many query tokens are computed at once: they share the largest number of keys."""
_ROWS = 16
"""Rows of logits that a thread turns into weights at once."""
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
    """Return queries, keys and values in bfloat16, and where sequences begin in int32.

    Queries and values have the regime. Keys have blocks of zeros where it asks for them, and
    ordinary values elsewhere, so that logits are as large as the queries make them. Beside outliers
    keys are small: logits lie some ten apart, and several tokens have weight. Among huge ones a
    query head has logits that are all far below 0.

    Raises:
        ValueError: No lengths of 1 to `longest` tokens have the sum N.
    """
    axes, longest = workload.axes, int(workload.scalars.get("longest", _LONGEST))
    of_keys = {"zero_blocks": "zero_blocks", "outliers": "tiny"}.get(regime, "normal")
    shape = axes["N"], axes["H"], axes["D"]
    queries = _drawn(rng, (*shape[:2], axes["G"], axes["D"]), regime, _QUERIES)
    keys = _drawn(rng, shape, of_keys, _KEYS)
    if regime == "huge":
        queries[:, 0, 0] = -np.abs(queries[:, 0, 0])
        keys[:, 0] = np.abs(keys[:, 0])
    return {
        "q": queries,
        "k": keys,
        "v": _drawn(rng, shape, regime, _VALUES),
        "indptr": _indptr(rng, axes["B"], axes["N"], longest),
    }


def _drawn(
    rng: np.random.Generator, shape: tuple[int, ...], regime: str, magnitudes: Magnitudes
) -> npt.NDArray[Any]:
    rows = int(np.prod(shape[:-1])), shape[-1]
    values = draw_values(rng, rows, draw_amplitudes(rng, rows, regime, magnitudes))
    return values.astype(numpy_dtype("bfloat16")).reshape(shape)


def _indptr(
    rng: np.random.Generator, sequences: int, tokens: int, longest: int
) -> npt.NDArray[np.int32]:
    """Return where sequences begin, of one token to about twice the mean, none above `longest`."""
    if not 0 < sequences <= tokens <= sequences * longest:
        raise ValueError(
            f"{sequences} sequences of 1 to {longest} tokens cannot have {tokens} in all"
        )
    result = np.zeros(sequences + 1, dtype=np.int32)
    left, room = tokens - sequences, longest - 1  # beside the one token that each has
    for after in reversed(range(sequences)):
        most = min(room, left, 2 * left // (after + 1))
        more = int(rng.integers(max(0, left - room * after), most + 1))
        place = sequences - after
        result[place] = result[place - 1] + 1 + more
        left -= more
    return result


def computed_values(workload: Workload) -> int:
    """Return how many logits there are at least: those of sequences of equal lengths.

    Of a large timed shape some heads of keys and values may be asked for alone.
    """
    axes = workload.axes
    tokens = axes["N"]
    return axes["H"] * axes["G"] * (tokens * (tokens // axes["B"] + 1) // 2)


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`; the scalar says nothing that the bounds do not."""
    del scalars
    shape = inputs["q"].shape
    exact, slack = np.empty(shape), np.empty(shape)
    for first, end in pairwise(inputs["indptr"].tolist()):
        for head in range(shape[1]):
            place = slice(first, end), head
            context = _Context.of(*(inputs[name][place] for name in ("q", "k", "v")))
            for rows in context.parts():
                exact[place][rows], slack[place][rows] = _attended(context, rows)
    slack *= _DEVIATIONS
    every = np.ones(shape, dtype=np.bool_)
    return {
        "out": Expected(
            exact, round_to_bf16(exact), every, slack=slack, slack_deviations=_OF_A_WHOLE
        )
    }


@dataclass(frozen=True)
class _Context:
    """The tokens of one sequence and one head of keys and values."""

    queries: npt.NDArray[Any]
    """(tokens, G, 128) bfloat16."""
    keys: Floats
    """(tokens, 128)."""
    values: Floats
    key_squares: Singles
    single_values: Singles

    @classmethod
    def of(
        cls, queries: npt.NDArray[Any], keys: npt.NDArray[Any], values: npt.NDArray[Any]
    ) -> "_Context":
        """Return the tokens of these bfloat16 arrays."""
        singles = keys.astype(np.float32), values.astype(np.float32)
        return cls(queries, decode(keys), decode(values), np.square(singles[0]), singles[1])

    def parts(self) -> list[slice]:
        """Return ranges of query tokens that are computed at once."""
        tokens, group, _ = self.queries.shape
        return slices(tokens, max(1, min(_TOKENS, _LOGITS // (group * tokens))))


def _attended(context: _Context, rows: slice) -> tuple[Floats, Floats]:
    """Return the results of some query tokens, and the standard deviations of honest errors.

    With p the weights, v the values and o = sum(p v), to the variance of an element contribute:

    - p rounded to bfloat16: r^2 sum(p^2 v^2), r the deviation of one rounding;
    - parts of the context rounded to bfloat16 before they are merged: r^2 o^2 where there is one.
      Of several the squares add up to sum(p^2 v^2) in the mean, and to more where large parts
      cancel: o^2 alone refused one of 580 honest results of two parts for a single element;
    - errors e of the logits: sum(p^2 e^2 (v - o)^2), since a weight errs by e of itself, and all
      weights together by sum(p e);
    - sums of n products in fp32, as those of gemm_bf16: u n / 8 |o| of one sign, a deviation of
      u (2 sqrt(n) + n / 12) / 3 of the root of sum(p^2 v^2) of both.

    Returns:
        Two arrays (query tokens, G, 128).
    """
    queries = context.queries[rows]
    shape, seen = queries.shape, slice(rows.stop)
    queries = queries.reshape(-1, shape[2])
    last = np.repeat(np.arange(rows.start, rows.stop, dtype=np.int64), shape[1])
    p = decode(queries) @ context.keys[seen].T
    errors = np.square(queries.astype(np.float32)) @ context.key_squares[seen].T
    run_wide(lambda part: _weigh(p[part], errors[part], last[part]), slices(len(p), _ROWS))
    exact = p @ context.values[seen]
    squared = np.square(p.astype(np.float32))
    moved = np.multiply(squared, errors, out=errors)
    single = context.single_values[seen]
    by_weight, by_error = (sums @ np.square(single) for sums in (squared, moved))
    by_error += np.square(exact) * moved.sum(axis=1, keepdims=True) - 2 * exact * (moved @ single)
    n = last[:, None] + 1.0
    summing = _U * (n / 8 * np.abs(exact) + (2 * n**0.5 + n / 12) / 3 * np.sqrt(by_weight))
    variance = _BF16**2 * (2 * by_weight + np.square(exact)) + np.maximum(by_error, 0)
    deviation = np.sqrt(variance + np.square(summing))
    return exact.reshape(shape), deviation.reshape(shape)


def _weigh(p: Floats, errors: Singles, last: npt.NDArray[np.int64]) -> None:
    """Turn sums of products into weights, and sums of their squares into squared errors, in place.

    A logit may err by what fp32 sums of its products may be off: the slack of gemm_bf16 at K = 128,
    u (K / 2 |logit| + (2 sqrt(K) + K / 12) S), S the root of the sum of the squared products.
    Scaling and shifting add a few u |logit|, which it has room for.

    Args:
        p: (query tokens and heads, tokens), the sums.
        errors: The sums of squares.
        last: The last token that each row attends to.
    """
    depth = 128
    scale = depth**-0.5
    p *= scale
    np.sqrt(errors, out=errors)
    errors *= np.float32((2 * depth**0.5 + depth / 12) * scale)
    errors += np.float32(depth / 2) * np.abs(p).astype(np.float32)
    errors *= np.float32(_U)
    np.square(errors, out=errors)
    own = p[:, last[0] :]  # tokens before those of all rows count for each
    own[np.arange(own.shape[1]) > last[:, None] - last[0]] = -np.inf
    p -= p.max(axis=1, keepdims=True)
    np.exp(p, out=p)
    p /= p.sum(axis=1, keepdims=True)
