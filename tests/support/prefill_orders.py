"""Causal attention of whole sequences in the orders of attention_orders.py."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.rounding import decode
from kopt.kernels.wide_work import slices
from support.attention_orders import Order

Arrays = Mapping[str, npt.NDArray[Any]]


def attend_causally(order: Order, inputs: Arrays, sees: int = 0) -> npt.NDArray[np.float64]:
    """Return the results of a call of attention_prefill before their last rounding.

    Args:
        order: Tiles and parts begin at the first token of a sequence.
        inputs: Of the problem.
        sees: How many tokens behind its own each token attends to: 0 is right. The first always
            has its own.
    """
    q, k, v = (decode(inputs[name]).astype(np.float32) for name in "qkv")
    out = np.empty(q.shape)
    for first, end in pairwise(inputs["indptr"].tolist()):
        tokens = end - first
        places = np.arange(tokens, dtype=np.int64)
        for head, query in np.ndindex(q.shape[1:3]):
            with np.errstate(over="ignore", invalid="ignore"):
                logits = order.logits_of(q[first:end, head, query], k[first:end, head])
                logits[places > np.maximum(places[:, None] + sees, 0)] = -np.inf
                parts = slices(tokens, -(-tokens // order.splits))
                for place, rows in enumerate(parts):  # later parts have nothing that counts
                    counted = parts[: place + 1]
                    got = order.attended(logits[rows], v[first:end, head], counted)
                    out[first:end][rows, head, query] = got
    return out
