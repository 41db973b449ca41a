"""gemm_bf16 in PyTorch, for exports: one call returns out."""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch


def run(x, weight):
    return (x.float() @ weight.float().T).to(torch.bfloat16)
