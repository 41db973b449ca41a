"""Attention of query tokens as kernels compute it: in fp32 in many orders, and too coarsely."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.rounding import decode
from kopt.kernels.wide_work import slices

Arrays = Mapping[str, npt.NDArray[Any]]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Order:
    """Which tokens meet when, and what is rounded to what on the way."""

    tile: int = 16
    """Tokens that are added at once."""
    splits: int = 1
    """Parts of a sequence, each with a softmax of its own."""
    weights: str = "float32"
    """What weights are rounded to before they meet values."""
    parts: str = "float32"
    """What the divided results of parts are stored as."""
    sums: str = "float32"
    """What sums of weighted values are kept in, from tile to tile."""
    logits: str = "float32"
    """What logits are stored as."""
    takes_largest_off: bool = True
    least_largest: float = -np.inf
    """What the search for the largest logit begins with."""
    sums_rounded_weights: bool = False
    """Whether the divisor is the sum of weights as they were rounded."""

    def attend(self, inputs: Arrays) -> npt.NDArray[np.float64]:
        """Return the results of a call before their last rounding."""
        q = decode(inputs["q"]).astype(np.float32)
        out = np.empty(q.shape)
        for sequence, head in np.ndindex(q.shape[:2]):
            keys, values = (rows_of(inputs, name, sequence, head) for name in CACHES)
            with np.errstate(over="ignore", invalid="ignore"):
                logits = self.logits_of(q[sequence, head], keys)
                parts = slices(len(keys), -(-len(keys) // self.splits))
                out[sequence, head] = self.attended(logits, values, parts)
        return out

    def logits_of(self, q: Singles, keys: Singles) -> Singles:
        """Return the logits (rows of q, tokens) as they are stored."""
        return _as((q @ keys.T * q.shape[1] ** -0.5).astype(np.float32), self.logits)

    def attended(self, logits: Singles, values: Singles, parts: list[slice]) -> Singles:
        """Return the results (rows, 128) of logits, those that do not count at minus infinity.

        Each row has some in the first tile of every part.
        """
        states = [self._part(logits[:, part], values[part]) for part in parts]
        if len(states) == 1:
            return states[0][0]
        largest = np.max([state[1] for state in states], axis=0)
        factors = [np.exp(state[1] - largest) * state[2] for state in states]
        stored = [_as(state[0], self.parts) for state in states]
        total = np.sum([f * s for f, s in zip(factors, stored, strict=True)], axis=0)
        merged: Singles = total / np.sum(factors, axis=0)
        return merged

    def _part(self, logits: Singles, values: Singles) -> tuple[Singles, Singles, Singles]:
        """Return the divided result, the largest logit and the sum of weights, online."""
        begins_at = self.least_largest if self.takes_largest_off else 0
        largest = np.full((len(logits), 1), begins_at, np.float32)
        weight = np.zeros_like(largest)
        sums = np.zeros((len(logits), values.shape[1]), dtype=np.float32)
        for tile in slices(len(values), self.tile):
            now = largest
            if self.takes_largest_off:
                now = np.maximum(largest, logits[:, tile].max(axis=1, keepdims=True))
            shrink = np.exp(largest - now)
            exact = np.exp(logits[:, tile] - now)
            p = _as(exact, self.weights)
            counted = p if self.sums_rounded_weights else exact
            weight = weight * shrink + counted.sum(axis=1, keepdims=True)
            sums = _as(_as(sums * shrink, self.sums) + p @ values[tile], self.sums)
            largest = now
        return sums / weight, largest, weight


CACHES = ("k_cache", "v_cache")


def rows_of(inputs: Arrays, cache: str, sequence: int, head: int) -> Singles:
    """Return the keys or values of a sequence and a head, (tokens, 128)."""
    indptr, indices = inputs["kv_indptr"], inputs["kv_indices"]
    pages = indices[indptr[sequence] : indptr[sequence + 1]]
    rows = inputs[cache][pages][:, :, head].reshape(-1, inputs[cache].shape[3])
    behind = inputs[cache].shape[1] - int(inputs["kv_last_page_len"][sequence])
    return decode(rows[: len(rows) - behind]).astype(np.float32)


def _as(values: npt.NDArray[np.floating[Any]], dtype: str) -> Singles:
    """Return `values` as they are once stored as `dtype`."""
    return values.astype(numpy_dtype(dtype)).astype(np.float32)
