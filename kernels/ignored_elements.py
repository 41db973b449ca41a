"""Which elements of a problem's inputs count for nothing, known by the names of its tensors.

The vector of an empty state (v_a, s_a, v_b, s_b), rows of an expert beyond its mask (input, mask),
and slots of a paged cache behind the last token of a sequence (kv_indptr, kv_indices,
kv_last_page_len). Checks put NaN and infinity there (case_inputs.py).
"""

import numpy as np
import numpy.typing as npt

from .oracle import Arrays
from .problem import Problem

_PAGE_TABLES = ("kv_indptr", "kv_indices", "kv_last_page_len")
_CACHES = ("k_cache", "v_cache")


def is_merge(problem: Problem) -> bool:
    """Return whether two states are merged, each a vector and a score that may be -inf."""
    return {"v_a", "s_a", "v_b", "s_b"} <= {tensor.name for tensor in problem.tensors}


def has_mask(problem: Problem) -> bool:
    """Return whether an input has rows that a mask leaves out."""
    ranks = {tensor.name: len(tensor.shape) for tensor in problem.tensors}
    return (ranks.get("input"), ranks.get("mask")) == (3, 1)


def ignored_elements(problem: Problem, inputs: Arrays) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which elements count for nothing, whatever they hold, by tensor; broadcastable."""
    if is_merge(problem):
        return {f"v_{side}": np.isneginf(inputs[f"s_{side}"])[..., None] for side in ("a", "b")}
    if has_mask(problem):
        rows = np.arange(inputs["input"].shape[1], dtype=np.int64)
        ignored: npt.NDArray[np.bool_] = np.greater_equal(rows, inputs["mask"][:, None])
        return {"input": ignored[..., None]}
    if {*_PAGE_TABLES, *_CACHES} <= {tensor.name for tensor in problem.tensors}:
        unused = _unused_slots(inputs)
        return dict.fromkeys(_CACHES, unused[..., None, None])
    return {}


def _unused_slots(inputs: Arrays) -> npt.NDArray[np.bool_]:
    """Return which slots (pages, page size) of a cache hold no token of any sequence."""
    indptr, indices, last = (inputs[name] for name in _PAGE_TABLES)
    pages, page_size = inputs["k_cache"].shape[:2]
    slots = np.arange(page_size, dtype=np.int64)
    held = np.zeros(pages, dtype=np.int64)
    held[indices[: indptr[-1]]] = page_size
    held[indices[indptr[1:] - 1]] = last
    unused: npt.NDArray[np.bool_] = np.greater_equal(slots, held[:, None])
    return unused
