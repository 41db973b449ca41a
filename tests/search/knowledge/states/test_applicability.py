"""Techniques that cannot fit a kernel are refused with a reason; what is not known is allowed."""

from dataclasses import replace

import pytest

from kopt.kernels.problem_loader import find_kernel
from kopt.search.knowledge.records import Technique
from kopt.search.knowledge.seed_base import load_seed
from kopt.search.knowledge.states.applicability import (
    NEEDS,
    KernelTraits,
    kernel_traits,
    why_not,
)

TECHNIQUES = load_seed().techniques
PLAIN = KernelTraits(
    text="",
    dtypes=frozenset({"bfloat16"}),
    layouts=frozenset({"row_major"}),
    row_elements=4096,
    rows=200,
    has_shared_operand=True,
    flop_per_byte=None,
    compute_capability=(9, 0),
    sm_count=132,
)
"""Nothing is written about what it computes."""
REFUSED = {
    "few_rows": replace(PLAIN, rows=264),
    "fp4": PLAIN,
    "fp8": PLAIN,
    "half": replace(PLAIN, dtypes=frozenset({"float32"})),
    "long_rows": replace(PLAIN, row_elements=4095),
    "many_rows": replace(PLAIN, rows=132),
    "matmul": replace(PLAIN, flop_per_byte=7.9),
    "only_sm_90": replace(PLAIN, compute_capability=(10, 0)),
    "only_sm_100": PLAIN,
    "reduction": replace(PLAIN, text="act silu(gate) * up"),
    "scale_tiles": PLAIN,
    "shared_operand": replace(PLAIN, has_shared_operand=False),
    "short_rows": replace(PLAIN, row_elements=4097),
    "sm_80": replace(PLAIN, compute_capability=(7, 5)),
    "sm_90": replace(PLAIN, compute_capability=(8, 9)),
    "sm_100": PLAIN,
    "softmax": replace(PLAIN, text="norm of rows"),
    "special_math": replace(PLAIN, text="adds two tensors"),
}
ALLOWED = {
    "few_rows": replace(PLAIN, rows=263),
    "fp4": replace(PLAIN, dtypes=frozenset({"uint8"})),
    "fp8": replace(PLAIN, dtypes=frozenset({"float8_e4m3fn"})),
    "half": PLAIN,
    "long_rows": PLAIN,
    "many_rows": replace(PLAIN, rows=133),
    "matmul": replace(PLAIN, flop_per_byte=8.0),
    "only_sm_90": PLAIN,
    "only_sm_100": replace(PLAIN, compute_capability=(10, 0)),
    "reduction": replace(PLAIN, text="rmsnorm"),
    "scale_tiles": replace(PLAIN, layouts=frozenset({"sf_128x4"})),
    "shared_operand": PLAIN,
    "short_rows": PLAIN,
    "sm_80": PLAIN,
    "sm_90": PLAIN,
    "sm_100": replace(PLAIN, compute_capability=(10, 3)),
    "softmax": replace(PLAIN, text="a softmax over keys"),
    "special_math": replace(PLAIN, text="silu"),
}


def needing(*needs: str) -> Technique:
    return Technique(
        id="made", family="other", category="general", description="", needs=needs, source=""
    )


def of_kernel(kernel: str, arch: str = "sm_90a") -> KernelTraits:
    return kernel_traits(*find_kernel(kernel), arch)


@pytest.mark.parametrize("need", NEEDS)
def test_need_that_a_kernel_does_not_meet_is_the_reason(need: str) -> None:
    assert why_not(needing(need), REFUSED[need]) == f"it needs {NEEDS[need][0]}"


@pytest.mark.parametrize("need", NEEDS)
def test_need_that_a_kernel_meets_is_no_obstacle(need: str) -> None:
    assert why_not(needing(need), ALLOWED[need]) is None


@pytest.mark.parametrize("need", ["matmul", "reduction", "softmax", "special_math"])
def test_what_nobody_wrote_down_is_allowed(need: str) -> None:
    assert why_not(needing(need), PLAIN) is None


def test_word_that_no_rule_knows_refuses() -> None:
    assert why_not(needing("a_word"), PLAIN) == "it needs a_word, which no rule knows"


def test_every_need_of_the_seed_is_known() -> None:
    assert {need for one in TECHNIQUES.values() for need in one.needs} <= set(NEEDS)


def test_retired_family_is_refused_before_anything_else() -> None:
    retired = replace(PLAIN, retired=frozenset({"fp4_intrinsics"}))
    reason = why_not(TECHNIQUES["packed_fp4_convert"], retired)
    assert reason == "its family fp4_intrinsics is retired in this run"


@pytest.mark.parametrize(
    ("kernel", "allowed", "refused"),
    [
        (
            "add_rmsnorm_fp4quant_b128xh4096",
            {"packed_fp4_convert", "row_in_registers", "one_barrier", "operand_in_registers"},
            {"mma_sync", "scale_words", "vectors_of_32_bytes", "online_softmax"},
        ),
        (
            "silu_and_mul_b1024xh14336",
            {"vector_loads", "fast_reciprocal", "whole_waves"},
            {"packed_fp4_convert", "warp_shuffles", "warp_per_row", "split_rows"},
        ),
        (
            "merge_state_n128xh64xd128",
            {"online_softmax", "tiles_of_threads", "base_two_exp"},
            {"row_in_shared_memory", "cluster_sums", "mma_sync"},
        ),
        (
            "nvfp4_quantize_m128xk14336",
            {"scale_words", "packed_fp4_convert", "subwarp_groups", "split_rows"},
            {"operand_in_registers", "whole_waves"},
        ),
    ],
)
def test_techniques_of_a_packaged_kernel(kernel: str, allowed: set[str], refused: set[str]) -> None:
    traits = of_kernel(kernel)
    reasons = {name: why_not(TECHNIQUES[name], traits) for name in allowed | refused}
    assert {name for name, why in reasons.items() if why is None} == allowed


def test_rows_and_their_length_are_those_of_the_largest_tensor() -> None:
    traits = of_kernel("merge_state_n8xh64xd128")
    assert (traits.rows, traits.row_elements) == (8 * 64, 128)


def test_newer_target_allows_what_it_brings() -> None:
    wide = TECHNIQUES["vectors_of_32_bytes"]
    kernel = "silu_and_mul_b8xh14336"
    assert why_not(wide, of_kernel(kernel, "sm_100a")) is None
    assert why_not(wide, of_kernel(kernel)) == f"it needs {NEEDS['sm_100'][0]}"
