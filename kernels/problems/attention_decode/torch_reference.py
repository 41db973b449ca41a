"""attention_decode in PyTorch, for exports: one call returns out."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch


def run(q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len):  # noqa: PLR0913 -- the inputs
    page_size = k_cache.shape[1]
    out = torch.empty_like(q)
    for sequence in range(q.shape[0]):
        pages = kv_indices[kv_indptr[sequence] : kv_indptr[sequence + 1]].long()
        tokens = (len(pages) - 1) * page_size + int(kv_last_page_len[sequence])
        keys, values = (
            cache[pages].flatten(0, 1)[:tokens].float().transpose(0, 1)
            for cache in (k_cache, v_cache)
        )
        logits = q[sequence].float() @ keys.transpose(1, 2) * q.shape[-1] ** -0.5
        out[sequence] = (torch.softmax(logits, dim=-1) @ values).to(out.dtype)
    return out
