"""FlashInfer's silu_and_mul, C++: the first half of a row is the gate."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python",)


def silu_and_mul(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    del scalars
    run = import_module("flashinfer.activation").get_act_and_mul_module("silu").silu_and_mul
    out, gate_and_up = tensors["out"], tensors["input"]
    return lambda: run(out, gate_and_up, pdl)
