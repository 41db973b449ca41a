"""FlashInfer's paths of paged decode attention that are there on Hopper, into the given output.

Each is planned when it is bound: the plan follows from the page tables, which a server makes once a
step and uses in every layer. What a call computes is launched with that plan. Two paths take a
dense table of pages and lengths in the place of the three tables, which are made then, too.

Partial results lie in a workspace that all calls of a process share. FlashInfer keeps them in
bfloat16.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

DISTRIBUTIONS = ("flashinfer-python", "torch")
_WORKSPACE_BYTES = 256 << 20
"""FlashInfer recommends 128 MB; the first 8 MB of XQA's are its semaphores."""

Tensors = Mapping[str, Any]
Scalars = Mapping[str, float | int]


def cuda_cores(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind BatchDecodeWithPagedKVCacheWrapper without tensor cores: fp32 weights and products."""
    del scalars
    return _planned(tensors, pdl, use_tensor_cores=False)


def tensor_cores(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with tensor cores, FlashInfer's FA2 kernels of prefill with one query token."""
    del scalars
    return _planned(tensors, pdl, use_tensor_cores=True, backend="fa2")


def fa3(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with the FA3 kernels, for Hopper alone; these do not split a sequence."""
    del scalars
    _refuse(pdl)
    return _planned(tensors, pdl, use_tensor_cores=True, backend="fa3")


def cudnn(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the same with cuDNN's paged decode graph, built in the first call; a dense table."""
    del scalars
    _refuse(pdl)
    return _planned(tensors, pdl, use_tensor_cores=False, backend="cudnn")


def xqa(tensors: Tensors, scalars: Scalars, pdl: bool) -> Callable[[], object]:
    """Bind the XQA kernel of TensorRT-LLM, which FlashInfer ships; a dense table."""
    del scalars
    run = import_module("flashinfer.decode").xqa_batch_decode_with_kv_cache
    q, out = _by_query_head(tensors)
    caches = tensors["k_cache"], tensors["v_cache"]
    table, lengths = _dense(tensors)
    options = {
        "workspace_buffer": _workspace("xqa", q.device),
        "block_tables": table,
        "seq_lens": lengths,
        "max_seq_len": table.shape[1] * caches[0].shape[1],
        "bmm1_scale": q.shape[-1] ** -0.5,
        "kv_layout": "NHD",
        "enable_pdl": pdl,
    }
    return lambda: run(q, caches, out=out, **options)


def _refuse(pdl: bool) -> None:
    if pdl:
        raise NotImplementedError("this path has no programmatic dependent launch")


def _planned(
    tensors: Tensors, pdl: bool, *, use_tensor_cores: bool, backend: str = "auto"
) -> Callable[[], object]:
    wrapper = import_module("flashinfer.decode").BatchDecodeWithPagedKVCacheWrapper(
        _workspace("planned", tensors["q"].device),
        "NHD",
        use_tensor_cores=use_tensor_cores,
        backend=backend,
    )
    q, out = _by_query_head(tensors)
    caches = tensors["k_cache"], tensors["v_cache"]
    _, page_size, heads, columns = caches[0].shape
    wrapper.plan(
        *(tensors[name] for name in ("kv_indptr", "kv_indices", "kv_last_page_len")),
        q.shape[1],
        heads,
        columns,
        page_size,
        q_data_type=q.dtype,
        kv_data_type=caches[0].dtype,
    )
    return lambda: wrapper.run(q, caches, out=out, enable_pdl=pdl)


def _by_query_head(tensors: Tensors) -> tuple[Any, Any]:
    """Return q and out as (batch, query heads, 128), over the same memory."""
    shape = tensors["q"].shape
    q, out = (tensors[name].view(shape[0], shape[1] * shape[2], shape[3]) for name in ("q", "out"))
    return q, out


def _dense(tensors: Tensors) -> tuple[Any, Any]:
    """Return the pages of each sequence, one a row, and the lengths as uint32."""
    torch = import_module("torch")
    indptr, indices, last = (
        tensors[name] for name in ("kv_indptr", "kv_indices", "kv_last_page_len")
    )
    counts = indptr[1:] - indptr[:-1]
    table = torch.zeros((len(last), int(counts.max())), dtype=torch.int32, device=last.device)
    for b, (first, end) in enumerate(pairwise(indptr.tolist())):
        table[b, : end - first] = indices[first:end]
    lengths = (counts - 1) * tensors["k_cache"].shape[1] + last
    return table, lengths.view(torch.uint32)


@cache
def _workspace(use: str, device: Any) -> Any:
    """Return memory that is zero at first, as semaphores must be; one for each `use`."""
    del use
    torch = import_module("torch")
    return torch.zeros(_WORKSPACE_BYTES, dtype=torch.uint8, device=device)
