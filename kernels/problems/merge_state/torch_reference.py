"""merge_state in PyTorch, for exports: one call returns (v_merged, s_merged)."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch


def run(v_a, s_a, v_b, s_b):
    larger = torch.maximum(s_a, s_b)
    is_empty = torch.isneginf(larger)
    offset = torch.where(is_empty, torch.zeros_like(larger), larger)
    weight_a, weight_b = torch.exp2(s_a - offset), torch.exp2(s_b - offset)
    total = torch.where(is_empty, torch.ones_like(larger), weight_a + weight_b)
    share_a, share_b = (weight_a / total)[..., None], (weight_b / total)[..., None]
    # An empty state counts for nothing, whatever its v holds: NaN, too.
    used_a = torch.where(torch.isneginf(s_a)[..., None], 0.0, v_a.float())
    used_b = torch.where(torch.isneginf(s_b)[..., None], 0.0, v_b.float())
    merged = used_a * share_a + used_b * share_b
    return merged.to(torch.bfloat16), torch.log2(total) + larger
