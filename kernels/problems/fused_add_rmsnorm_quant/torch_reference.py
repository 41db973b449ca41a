"""fused_add_rmsnorm_quant in PyTorch, for exports: one call returns (out, residual)."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

EPS = 1e-6
E4M3_MAX = 448.0


def run(input, residual, weight, scale):
    h = input.float() + residual.float()
    normed = h * torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + EPS) * weight.float()
    out = (normed / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
    return out, h.to(torch.bfloat16)
