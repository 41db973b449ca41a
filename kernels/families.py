"""The strategy families that a candidate may claim: the search keeps its beam diverse by them."""

FAMILY_CHANGES = {
    "thread_utilization": "let no thread idle: other block size, several rows a block",
    "fp4_intrinsics": "convert FP4 and FP8 by hardware instructions, two or more values at once",
    "vectorization": "load and store 16 bytes an access, 8 bfloat16 values at a time",
    "register_caching": "keep what was loaded in registers across a barrier instead of reloading",
    "launch_bounds": "bound threads or registers so that more blocks are resident on an SM",
    "reduction": "reduce by warp shuffles, in two levels, with fewer barriers",
    "pass_fusion": "one pass over the data instead of several, one launch instead of several",
    "coarsening": "more elements or rows for each thread",
    "shape_specialization": "sizes as compile-time constants: unrolled loops, no bounds checks",
    "ilp_unroll": "several independent loads and accumulators in flight for each thread",
    "async_pipeline": "asynchronous or bulk copies, double buffered, ahead of their use",
    "smem_tiling": "stage what is used again in shared memory tiles",
    "bank_conflicts": "pad or swizzle shared memory so that a warp hits all banks",
    "tensor_cores": "matrix instructions for inner products, within the error budget",
    "cache_policy": "read-only loads, streaming stores, eviction hints",
    "fast_math": "special-function instructions in place of exact division, exp or sqrt",
    "packed_simd": "packed half or bfloat16 arithmetic, two values an instruction",
    "divergence": "predication in place of branches in inner loops",
    "layout": "order threads or data so that a warp reads whole 32-byte sectors",
    "algebra": "fewer operations by an exact rewriting of the formula",
    "grid_shape": "another number of blocks: fill every SM, avoid a short last wave",
    "persistent": "as many blocks as fit at once, each working through many tiles",
    "constants_sweep": "the same code with other block sizes, unrolls, rows a block",
    "clusters": "blocks of a cluster share work through distributed shared memory",
    "other": "none of these",
}
"""What a candidate of each family does, in a few words."""

FAMILIES = tuple(FAMILY_CHANGES)
