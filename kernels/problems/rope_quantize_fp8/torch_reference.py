"""rope_quantize_fp8 in PyTorch, for exports.

One call returns (q_rope_out, k_rope_out, q_nope_out, k_nope_out).
"""

# Text for exports, which run where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

QUANT_SCALE_Q = 1.25
QUANT_SCALE_KV = 0.75
E4M3_MAX = 448.0


def run(q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids):  # noqa: PLR0913 -- the inputs
    cosine, sine = cos_sin_cache[pos_ids.long()].chunk(2, dim=-1)
    return (
        quantized(rotated(q_rope, cosine[:, None], sine[:, None]), QUANT_SCALE_Q),
        quantized(rotated(k_rope, cosine, sine), QUANT_SCALE_KV),
        quantized(q_nope.float(), QUANT_SCALE_Q),
        quantized(k_nope.float(), QUANT_SCALE_KV),
    )


def rotated(x, cosine, sine):
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def quantized(values, scale):
    return (values * scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
