"""Tags of code and of questions."""

from importlib.resources import files

import pytest
import yaml

from kopt.tools.docs.query.request import filters_of
from kopt.tools.docs.records import SearchRequest
from kopt.tools.docs.words.tags import asked_tags, facts_of, known_archs, known_dtypes


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ('asm volatile("cp.async.cg.shared.global [%0], [%1], 16;");', "asynchronous copy"),
        ("copy(SM80_CP_ASYNC_CACHEALWAYS<float>{}, a, b);", "asynchronous copy"),
        ('asm("cp.async.bulk.tensor.2d.shared::cluster.global");', "TMA bulk tensor copy"),
        ("SM90_TMA_LOAD_MULTICAST_2D::copy(desc)", "TMA multicast"),
        ("mbarrier_try_wait_parity(bar, phase);", "mbarrier arrive"),
        ("x += __shfl_xor_sync(0xffffffff, x, 16);", "warp shuffle reduction"),
        ("warpgroup_arrive(); gemm(); warpgroup_commit_batch();", "Hopper wgmma"),
        ('asm("tcgen05.mma.cta_group::1.kind::f16");', "Blackwell tcgen05"),
        ("ldmatrix_m8n8x4(frag, ptr)", "ldmatrix"),
        ('asm("lop3.b32 %0, %1, %2, %3, %4;")', "int4 unpacking"),
        ("cvt_rn_satfinite_e2m1x2_f32(x)", "FP4 E2M1"),
        ("cudaGridDependencySynchronize();", "programmatic dependent launch"),
        ('asm("setmaxnreg.inc.sync.aligned.u32 240;")', "register reallocation"),
        ("atomicAdd(&out[i], x);", "atomic add"),
        ("acc = tl.dot(a, b, acc)", "Triton dot"),
        ("auto v = *reinterpret_cast<uint4 const*>(p);", "128-bit vectorized"),
    ],
)
def test_spelling_in_code_gives_its_tag(code: str, tag: str) -> None:
    assert any(said.startswith(tag) for said in facts_of("f a.cu", code).tags)


@pytest.mark.parametrize(
    ("names", "tag"),
    [
        ("FusedAddRMSNormKernel norm.cuh", "fused add RMSNorm with residual"),
        ("k csrc/norm.cu applies RMS norm to the residual", "fused add RMSNorm with residual"),
        ("BatchDecodeWithPagedKVCacheKernel decode.cuh", "attention decode"),
        ("BatchDecodeWithPagedKVCacheKernel decode.cuh", "paged KV cache page table"),
        ("moe_align_block_size_kernel a.cu", "MoE token sort and block alignment"),
        ("act_and_mul_kernel activation.cu", "SwiGLU gated activation silu and multiply"),
        ("topKPerRow a.cu", "top-k selection"),
        ("bgmv_shrink_sliced a.cu", "LoRA multi-adapter SGMV BGMV"),
        ("MergeStateKernel cascade.cuh", "merge attention states by log-sum-exp"),
        ("selective_scan_fwd a.cu", "selective scan state space model Mamba"),
        ("two_shot_all_reduce a.cuh", "all-reduce across GPUs"),
    ],
)
def test_name_of_an_operator_gives_its_tag(names: str, tag: str) -> None:
    assert tag in facts_of(names, "int i;").tags


def test_operators_are_not_read_from_the_code_alone() -> None:
    assert "softmax" not in facts_of("launch a.cu", "softmax(x);").tags


def test_trigger_is_whole_parts_of_a_name() -> None:
    assert facts_of("f a.cu", "strmatch(x); dermatology(y);").tags == ()


def test_tags_found_in_names_come_first() -> None:
    tags = facts_of("ldmatrix_x4 mma.cuh", "wgmma(); cp_async(); atomicAdd();").tags
    assert tags[0].startswith("ldmatrix")


def test_architectures_are_read_from_names_and_guards() -> None:
    code = "#if __CUDA_ARCH__ >= 900\n SM100_MMA_F16BF16_SS::fma();\n#endif"
    assert facts_of("f a.cu", code).arch == ("sm90", "sm100")
    assert facts_of("f include/hopper/a.cuh", "").arch == ("sm90",)


def test_number_types_are_those_that_code_names() -> None:
    code = "__nv_bfloat162 a; __nv_fp8x4_e4m3 b; int4 c; uint8_t d;"
    assert facts_of("f a.cu", code).dtype == ("bf16", "fp8")
    assert "int4" in facts_of("dequantize_int4 a.cu", "uint4b_t x; dequant(x);").dtype


@pytest.mark.parametrize("dtype", known_dtypes())
def test_a_type_that_chunks_are_tagged_with_can_be_asked_for(dtype: str) -> None:
    assert filters_of(SearchRequest(query="pack", dtype=dtype), ()).dtype == dtype


@pytest.mark.parametrize("arch", known_archs())
def test_an_architecture_that_chunks_are_tagged_with_can_be_asked_for(arch: str) -> None:
    assert filters_of(SearchRequest(query="pack", arch=arch), ()).arch == arch


@pytest.mark.parametrize(
    ("question", "tag"),
    [
        (
            "start before the previous kernel has finished",
            "programmatic dependent launch PDL",
        ),
        (
            "fetch an operand once for the CTAs of a cluster",
            "TMA multicast to a cluster",
        ),
        (
            "what is read once must not evict the rest of L2",
            "non-temporal streaming load, cache hints",
        ),
        ("give registers to the other warp group", "ping-pong schedule of two consumer warpgroups"),
        ("scales that are powers of two", "MX microscaling UE8M0 scales"),
        ("stores of 16-byte vectors", "128-bit vectorized load and store"),
    ],
)
def test_a_goal_asks_for_the_tag_of_its_technique(question: str, tag: str) -> None:
    assert tag in asked_tags(question)


def test_words_are_asked_for_in_any_order_and_form() -> None:
    assert asked_tags("latency of global memory, hidden") == asked_tags(
        "hide global memory latency"
    )
    assert asked_tags("hide global memory latency")


def test_half_an_ask_asks_for_nothing() -> None:
    assert asked_tags("latency") == ()


def test_joined_words_must_stand_together() -> None:
    tag = "tensor memory TMEM allocation and load"
    assert tag in asked_tags("free tensor memory")
    assert tag not in asked_tags("tensor in shared memory")


def test_every_tag_that_can_be_asked_for_is_one_that_code_is_given() -> None:
    tags = yaml.safe_load(files("kopt.tools.docs.words").joinpath("tags.yaml").read_text("utf-8"))
    given = {tag for part in ("name", "text") for family in tags[part].values() for tag in family}
    asks = yaml.safe_load(files("kopt.tools.docs.words").joinpath("asks.yaml").read_text("utf-8"))
    assert set(asks) <= given
