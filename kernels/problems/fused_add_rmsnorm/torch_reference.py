"""fused_add_rmsnorm in PyTorch, for exports: one call returns (input, residual) as they become."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

EPS = 1e-6


def run(input, residual, weight):
    h = input.float() + residual.float()
    normed = h * torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + EPS) * weight.float()
    return normed.to(torch.bfloat16), h.to(torch.bfloat16)
