"""gemm_fp8_block_scaled in PyTorch, for exports: one call returns out."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

BLOCK = 128


def run(x, x_scale, weight, weight_scale):
    blocks = weight_scale.shape[1]
    values = x.float().reshape(-1, blocks, BLOCK) * x_scale.T[: x.shape[0], :, None]
    of_rows = torch.arange(weight.shape[0], device=weight.device) // BLOCK
    weights = weight.float().reshape(-1, blocks, BLOCK) * weight_scale[of_rows][:, :, None]
    return (values.reshape(x.shape) @ weights.reshape(weight.shape).T).to(torch.bfloat16)
