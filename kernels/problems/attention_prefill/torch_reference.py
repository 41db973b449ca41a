"""attention_prefill in PyTorch, for exports: one call returns out."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
from itertools import pairwise

import torch


def run(q, k, v, indptr):
    out = torch.empty_like(q)
    for first, end in pairwise(indptr.tolist()):
        queries = q[first:end].float().permute(1, 2, 0, 3)
        keys, values = (one[first:end].float().permute(1, 0, 2).unsqueeze(1) for one in (k, v))
        logits = queries @ keys.transpose(2, 3) * q.shape[-1] ** -0.5
        later = torch.ones(logits.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        weights = torch.softmax(logits.masked_fill(later, float("-inf")), dim=-1)
        out[first:end] = (weights @ values).permute(2, 0, 1, 3).to(out.dtype)
    return out
