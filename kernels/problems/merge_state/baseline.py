"""FlashInfer's merge_state, C++, into given outputs; scores are log base 2."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python",)
_CALL_ORDER = ("v_a", "s_a", "v_b", "s_b", "v_merged", "s_merged")


def merge_state(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    del scalars
    if pdl:
        raise NotImplementedError("FlashInfer's merge_state has no programmatic dependent launch")
    run = import_module("flashinfer.cascade").get_cascade_module().merge_state
    arguments = tuple(tensors[name] for name in _CALL_ORDER)
    return lambda: run(*arguments)
