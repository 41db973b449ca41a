"""fused_add_rmsnorm_fp8_block_quant in PyTorch, for exports.

One call returns (out, block_scale, normed_out, residual); the rows are a multiple of 4.
"""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

EPS = 1e-6
E4M3_MAX = 448.0
LEAST_AMAX = 1e-4
BLOCK = 128


def run(input, residual, weight):
    h = input.float() + residual.float()
    normed = h * torch.rsqrt(h.square().mean(dim=-1, keepdim=True) + EPS) * weight.float()
    normed_out = normed.to(torch.bfloat16)
    blocks = normed_out.float().reshape(h.shape[0], -1, BLOCK)
    scale = blocks.abs().amax(dim=-1).clamp(min=LEAST_AMAX) / E4M3_MAX
    codes = (blocks / scale[..., None]).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
    return codes.reshape(h.shape), scale.T.contiguous(), normed_out, h.to(torch.bfloat16)
