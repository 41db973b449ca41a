"""Libraries' causal prefill over ragged tensors: FlashInfer's paths, FlashAttention-3, torch.

FlashInfer's paths are planned when they are bound, as a server plans once a step for all layers.
Their partial results, if there are any, lie in a workspace that all calls of a process share.
FlashAttention-3 and torch return a result of their own. torch's attention knows no ragged tensors:
it is bound where all sequences have one length.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "torch", "flash-attn-3")
_WORKSPACE_BYTES = 256 << 20
"""FlashInfer recommends 128 MB."""

Tensors = Mapping[str, Any]
Scalars = Mapping[str, float | int]


def fa2(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind BatchPrefillWithRaggedKVCacheWrapper with FlashInfer's FA2 kernels, for any GPU."""
    del scalars
    return _planned(tensors, pdl, "fa2")


def fa3(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with FlashInfer's FA3 kernels, for Hopper alone."""
    del scalars
    _refuse(pdl)
    return _planned(tensors, pdl, "fa3")


def cudnn(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with cuDNN's ragged attention graph, built in the first call."""
    del scalars
    _refuse(pdl)
    return _planned(tensors, pdl, "cudnn")


def flash_attn_3(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind flash_attn_varlen_func of FlashAttention-3's own package, for Hopper alone."""
    del scalars
    _refuse(pdl)
    attend = import_module("flash_attn_interface").flash_attn_varlen_func
    q, _ = _by_query_head(tensors)
    bounds, longest = tensors["indptr"], max(_lengths(tensors))

    def run() -> Mapping[str, Any]:
        k, v = tensors["k"], tensors["v"]
        found: Any = attend(q, k, v, bounds, bounds, longest, longest, causal=True)
        result: Any = found if hasattr(found, "view") else found[0]  # some versions give sums, too
        return {"out": result.view(tensors["out"].shape)}

    return run


def torch_flash(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind torch's scaled_dot_product_attention with its FlashAttention-2 kernels."""
    del scalars
    _refuse(pdl)
    return _dense(tensors, "FLASH_ATTENTION")


def torch_cudnn(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with cuDNN."""
    del scalars
    _refuse(pdl)
    return _dense(tensors, "CUDNN_ATTENTION")


def _refuse(pdl: bool) -> None:
    if pdl:
        raise NotImplementedError("this path has no programmatic dependent launch")


def _planned(tensors: Tensors, pdl: bool, backend: str) -> Callable[[], object]:
    wrapper = import_module("flashinfer.prefill").BatchPrefillWithRaggedKVCacheWrapper(
        _workspace(tensors["q"].device), "NHD", backend=backend
    )
    q, out = _by_query_head(tensors)
    k, v, bounds = tensors["k"], tensors["v"], tensors["indptr"]
    wrapper.plan(
        bounds,
        bounds,
        q.shape[1],
        k.shape[1],
        q.shape[2],
        causal=True,
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return lambda: wrapper.run(q, k, v, out=out, enable_pdl=pdl)


def _dense(tensors: Tensors, backend: str) -> Callable[[], object]:
    lengths = _lengths(tensors)
    if len(set(lengths)) > 1:
        raise NotImplementedError("torch's attention takes sequences of one length")
    attend = import_module("torch.nn.functional").scaled_dot_product_attention
    kernels = import_module("torch.nn.attention")
    chosen = getattr(kernels.SDPBackend, backend)
    q, _ = _by_query_head(tensors)
    # (sequences, heads, tokens, 128), over the same memory
    dense = [
        one.view(len(lengths), lengths[0], *one.shape[1:]).transpose(1, 2)
        for one in (q, tensors["k"], tensors["v"])
    ]

    def run() -> Mapping[str, Any]:
        with kernels.sdpa_kernel(chosen):
            result = attend(*dense, is_causal=True, enable_gqa=True)
        return {"out": result.transpose(1, 2).reshape(tensors["out"].shape)}

    return run


def _by_query_head(tensors: Tensors) -> tuple[Any, Any]:
    """Return q and out as (tokens, query heads, 128), over the same memory."""
    shape = tensors["q"].shape
    q, out = (tensors[name].view(shape[0], shape[1] * shape[2], shape[3]) for name in ("q", "out"))
    return q, out


def _lengths(tensors: Tensors) -> list[int]:
    bounds = tensors["indptr"]
    lengths: list[int] = (bounds[1:] - bounds[:-1]).tolist()
    return lengths


@cache
def _workspace(device: Any) -> Any:
    torch = import_module("torch")
    return torch.zeros(_WORKSPACE_BYTES, dtype=torch.uint8, device=device)
