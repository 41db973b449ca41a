"""FlashInfer's rope_quantize_fp8 in its MLA form (keys without heads), C++, NeoX pairing."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python",)
_CALL_ORDER = (
    "q_rope",
    "k_rope",
    "q_nope",
    "k_nope",
    "q_rope_out",
    "k_rope_out",
    "q_nope_out",
    "k_nope_out",
    "cos_sin_cache",
    "pos_ids",
)


def rope_quantize_fp8(
    tensors: Mapping[str, Any], scalars: Mapping[str, float | int], pdl: bool
) -> Callable[[], object]:
    """Bind the C++ kernel; its module is built here."""
    run = import_module("flashinfer.rope").get_rope_module().rope_quantize
    scales = (float(scalars["quant_scale_q"]), float(scalars["quant_scale_kv"]))
    is_interleaved = False
    arguments = (*(tensors[name] for name in _CALL_ORDER), *scales, is_interleaved, pdl)
    return lambda: run(*arguments)
