"""silu_mul_fp4quant in PyTorch, for its definition.json: returns (out, block_scale).

Rows behind the mask keep what they had, which no function of its inputs can say: 0 stands for it.
"""

# Text for a graph, which is made where torch is installed: it has no types.
# pyright: basic, reportMissingImports=false
import torch

BLOCK = 16
E2M1_MAX = 6.0
E4M3_MAX = 448.0


def run(input, global_scale, mask):
    gate, up = input.float().split(input.shape[-1] // 2, dim=-1)
    out, scale = quantized(gate * torch.sigmoid(gate) * up, global_scale[:, None, None])
    valid = (torch.arange(input.shape[1], device=input.device) < mask[:, None])[..., None]
    return written_where(out, valid), tiled(written_where(scale, valid))


def written_where(x, valid):
    return torch.where(valid, x, torch.zeros_like(x))


def quantized(values, global_scale):
    """Return packed e2m1 codes as int8 and the e4m3 scales (..., blocks) of (..., n) values."""
    blocks = values.double().reshape(*values.shape[:-1], -1, BLOCK)
    scale = blocks.abs().amax(dim=-1) * global_scale / E2M1_MAX
    scale = scale.clamp(max=E4M3_MAX).to(torch.float8_e4m3fn)
    divisor = scale.double()
    factor = torch.where(divisor > 0, global_scale / divisor, torch.zeros_like(divisor))
    scaled = blocks * factor[..., None] + 0.0  # -0.0 becomes 0.0: all codes of a zero scale are 0
    return packed_e2m1(scaled.reshape(values.shape)), scale


def packed_e2m1(x):
    """Return the e2m1 codes of (..., n) values, two a byte: the even element in the low nibble."""
    codes = e2m1_codes(x)
    return (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8).view(torch.int8)


def e2m1_codes(x):
    """Return 4-bit codes 0 to 15: nearest, ties to the even code, saturating to +-6."""
    magnitude = x.abs()
    code = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    # Midpoints between 0, 0.5, 1, 1.5, 2, 3, 4, 6; a tie goes up where the upper code is even.
    for number, middle in enumerate((0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)):
        code += (magnitude >= middle if number % 2 else magnitude > middle).int()
    return code + 8 * torch.signbit(x).int()


def tiled(scale):
    """Return (experts, rows, blocks) scales in tiles of 128 x 4, padded to whole tiles."""
    experts, rows, blocks = scale.shape
    row_tiles, block_tiles = -(-rows // 128), -(-blocks // 4)
    shape = experts, row_tiles * 128, block_tiles * 4
    padded = torch.zeros(shape, dtype=torch.uint8, device=scale.device)
    padded[:, :rows, :blocks] = scale.view(torch.uint8)
    tiles = padded.reshape(experts, row_tiles, 4, 32, block_tiles, 4).permute(0, 1, 4, 3, 2, 5)
    return tiles.reshape(-1).view(torch.float8_e4m3fn)
