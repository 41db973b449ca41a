"""Whole kernels that the good model remembers, by problem: rewritten, not edited."""

from .moves import Move, from_sample

_KNOWN = {
    "silu_and_mul": (
        ("vectorized_16_bytes", "vectorization", "16-byte accesses, blocks along the row"),
        ("persistent_blocks", "persistent", "as many blocks as fit"),
        ("pipeline_primitives", "async_pipeline", "two buffers in flight"),
    ),
    "fused_add_rmsnorm": (
        ("template_row_in_registers", "register_caching", "the row waits in registers"),
        ("pdl_wait", "pass_fusion", "weights before the wait"),
        ("warp_per_row", "reduction", "a warp per row"),
    ),
    "merge_state": (("merge_state_vectorized", "vectorization", "weights once per head"),),
    "rope_quantize_fp8": (("rope_vectorized", "vectorization", "a warp per token and head"),),
    "fused_add_rmsnorm_quant": (("two_pass", "vectorization", "four columns an access"),),
    "fused_add_rmsnorm_fp8_block_quant": (
        ("group_tiles_fp8_blocks", "reduction", "a tile of lanes per scale block"),
    ),
}


def remembered(kernel: str) -> tuple[Move, ...]:
    """Return the kernels that fit the problem of a kernel id, the most promising first."""
    problem = max((name for name in _KNOWN if kernel.startswith(f"{name}_")), key=len, default="")
    return tuple(_move(*known) for known in _KNOWN.get(problem, ()))


def _move(sample: str, family: str, name: str) -> Move:
    return Move(
        family=family,
        name=name,
        hypothesis=f"Rewrite the kernel: {name}.",
        mechanism="fewer and wider accesses, fewer dependent round trips per thread",
        risk="alignment and tails; registers",
        gain=1.0,
        write=from_sample(sample),
    )
