"""What to write instead of PTX, and of headers that only a GPU can run.

g++ reads PTX as assembly of the CPU and complains about its operands; here the instruction is found
in the candidate's own text, and what stands in for it is named.
"""

import re

from kopt.kernels.record import Diagnostic, source_excerpt
from kopt.kernels.source_lexer import LogicalLine, Token, logical_lines

from .ptx.lowering import unknown_instruction

_ON_A_GPU = "only a GPU can run it: check with --device cuda:0"
# The first entry that an instruction begins with says what to write.
_INSTEAD = (
    ("ex2.approx", "exp2f(x), which becomes this instruction"),
    ("lg2.approx", "__log2f(x), which becomes this instruction"),
    ("rcp.", "__frcp_rn(x) or 1.0f / x"),
    ("rsqrt.", "rsqrtf(x)"),
    ("sqrt.", "sqrtf(x)"),
    ("sin.", "__sinf(x)"),
    ("cos.", "__cosf(x)"),
    ("tanh.", "__tanhf(x), of a half htanh(x)"),
    ("fma.rn.f32x2", "the sums and products of <kopt/float2_math.cuh>"),
    ("add.rn.f32x2", "the sums and products of <kopt/float2_math.cuh>"),
    ("mul.rn.f32x2", "the sums and products of <kopt/float2_math.cuh>"),
    ("fma.", "fmaf(x, y, z), of packed halves __hfma2"),
    ("cvt.rn.satfinite.e2m1", "the conversions of <kopt/nvfp4_utils.cuh>"),
    ("cvt.rn.satfinite.e4m3", "__nv_cvt_float2_to_fp8x2"),
    ("cvt.rn.satfinite.e5m2", "__nv_cvt_float2_to_fp8x2"),
    ("cvt.rn.bf16x2", "__floats2bfloat162_rn(low, high)"),
    ("cvt.rn.f16x2.e", "__nv_cvt_fp8x2_to_halfraw2 of cuda_fp8.h"),
    ("cvt.rn.f16x2", "__floats2half2_rn(low, high)"),
    ("cvt.", "the conversions of cuda_bf16.h, cuda_fp16.h and cuda_fp8.h, or a cast"),
    ("prmt.", "__byte_perm(x, y, selector)"),
    ("lop3.", "&, |, ^ and ~, which become this instruction"),
    ("bfe.", "a shift and a mask"),
    ("bfi.", "shifts and masks"),
    ("shf.", "__funnelshift_l or __funnelshift_r"),
    ("popc.", "__popc(x)"),
    ("clz.", "__clz(x)"),
    ("brev.", "__brev(x)"),
    ("dp4a.", "__dp4a(x, y, z)"),
    ("mma.sp", f"mma.sync of the whole matrix, without .sp; else {_ON_A_GPU}"),
    ("mma.", f"mma.sync.aligned.m16n8k16 of halves, m16n8k32 of bytes; else {_ON_A_GPU}"),
    ("ldmatrix.", "ldmatrix.sync.aligned.m8n8.x4.shared.b16, or loads"),
    ("stmatrix.", "stmatrix.sync.aligned.m8n8.x4.shared.b16, or stores"),
    ("movmatrix.", "movmatrix.sync.aligned.m8n8.trans.b16"),
    (
        "wgmma.",
        "wgmma.mma_async.sync.aligned.m64nNk16 and its like, dense, with operands of the statement"
        f" as sums; else {_ON_A_GPU}",
    ),
    (
        "tcgen05.",
        "tcgen05.mma of one block (.cta_group::1), not sparse, with tcgen05.ld, .st, .cp of 32x128b"
        f" and wider, .alloc, .commit and their waits; else {_ON_A_GPU}",
    ),
    ("redux.sync.", "__reduce_add_sync, __reduce_max_sync and their like"),
    ("shfl.sync.", "__shfl_sync, __shfl_xor_sync and their like"),
    ("vote.sync.", "__ballot_sync, __any_sync and __all_sync"),
    ("match.", "__match_any_sync"),
    ("activemask", "__activemask()"),
    ("elect.", "threadIdx.x % 32 == 0"),
    ("bar.warp.sync", "__syncwarp(mask)"),
    ("bar.red", "bar.red.popc.u32, .and.pred, .or.pred; or __syncthreads_count(x) and its like"),
    ("bar.", "bar.sync NUMBER, THREADS; bar.arrive NUMBER, THREADS; or __syncthreads()"),
    ("barrier.cluster.", "cooperative_groups::this_cluster().sync(), barrier_arrive, barrier_wait"),
    ("barrier.red", "bar.red.popc.u32, .and.pred, .or.pred; or __syncthreads_count(x)"),
    ("barrier.", "bar.sync NUMBER, THREADS; bar.arrive NUMBER, THREADS; or __syncthreads()"),
    ("membar.", "__threadfence() or __threadfence_block()"),
    ("fence.proxy.async", "kopt::fence_proxy_async of <kopt/bulk_copy.cuh>"),
    ("fence.", "__threadfence() or __threadfence_block()"),
    ("cp.async.bulk", "the copies of <kopt/bulk_copy.cuh>"),
    ("cp.async", "the functions of <kopt/cp_async.cuh> or <cuda_pipeline_primitives.h>"),
    ("mbarrier.", "the functions of <kopt/mbarrier.cuh>"),
    ("st.async", "kopt::st_async of <kopt/cluster_exchange.cuh>"),
    ("mapa.", "cooperative_groups::this_cluster().map_shared_rank(address, rank)"),
    ("griddepcontrol.", "the functions of <kopt/griddepcontrol.cuh>"),
    ("ld.global.nc", "__ldg(address), or the wide and streaming loads of <kopt/global_access.cuh>"),
    ("ld.acquire", "a volatile load, then __threadfence()"),
    ("ld.volatile", "a load through a volatile pointer"),
    ("ld.shared", "a load of the __shared__ variable"),
    ("ld.", "__ldcs, __ldcg, __ldg, or the loads of <kopt/global_access.cuh>"),
    ("st.release", "__threadfence(), then a volatile store"),
    ("st.shared", "a store to the __shared__ variable"),
    ("st.", "__stcs, __stcg, or the stores of <kopt/global_access.cuh>"),
    ("atom.", "atomicAdd, atomicMax, atomicCAS and their like"),
    ("red.", "atomicAdd, atomicMax and their like, the result unused"),
    ("prefetch", "nothing: leave it out; it changes no value"),
    ("applypriority", "nothing: leave it out; it changes no value"),
    ("discard", "nothing: leave it out; it changes no value"),
    ("createpolicy", "a load or store without a policy; it changes no value"),
    ("setmaxnreg", "nothing: leave it out, or launch with `flags: {max_registers: N}`"),
    ("nanosleep", "__nanosleep(ns)"),
    ("trap", "__trap()"),
    ("mov.", "threadIdx, blockIdx, or the value itself; a lane is threadIdx.x % 32"),
    ("cvta.", "__cvta_generic_to_shared(address)"),
    ("mad.", "x * y + z"),
    ("mul.hi", "__umulhi(x, y)"),
    ("max.", "fmaxf, max, __hmax2"),
    ("min.", "fminf, min, __hmin2"),
    ("add.", "+, __hadd2"),
    ("sub.", "-, __hsub2"),
    ("mul.", "*, __hmul2"),
)
_TENSOR = ("wmma.",)

_HEADERS = (
    ("cub/", "__shfl_xor_sync and shared memory, or cooperative_groups::reduce"),
    ("cuda/barrier", "__syncthreads(), or <kopt/mbarrier.cuh>"),
    ("cuda/pipeline", "<kopt/cp_async.cuh> or <cuda_pipeline_primitives.h>"),
    ("cuda/atomic", "atomicAdd and its like, with __threadfence()"),
    ("cuda/std/atomic", "atomicAdd and its like, with __threadfence()"),
    ("cuda/semaphore", "atomicCAS and __threadfence()"),
    ("cuda/latch", "__syncthreads()"),
    ("cuda/ptx", "the functions of <kopt/...>, one for each instruction that kernels use"),
    ("cuda_awbarrier", "<kopt/mbarrier.cuh>"),
)
_INSTRUCTION = re.compile(
    r"(?:^|[;{}])\s*(?:@!?%?\w+\s+)?([a-z][a-z0-9]*(?:[.:]+\w+)*)(?=[\s;{]|$)"
)
_ASM = frozenset({"asm", "__asm", "__asm__"})


def ptx_refusal(source: str, line: int, exact: bool = False) -> Diagnostic | None:
    """Return what to write instead of the `asm` statement that led to `line`, if there is one.

    Args:
        source: The candidate.
        line: Where the statement, or the macro that it comes from, is used.
        exact: Take a statement that begins at this very line only.
    """
    before = [one for one in _statements(source) if one[0] == line or (one[0] < line and not exact)]
    if not before:
        return None
    _, instruction = before[-1]
    shown = f"the PTX instruction {instruction}" if instruction else "an asm statement"
    return Diagnostic(
        line=line,
        message=f"not supported on the simulator: {shown} (inline assembly)",
        excerpt=source_excerpt(source, line),
        hint=_instead(instruction),
    )


def header_refusal(source: str) -> Diagnostic | None:
    """Return what to use instead of the first header that has no body for a CPU, if any."""
    for line in logical_lines(source):
        if not line.is_directive or len(line.tokens) < 3 or line.tokens[1].text != "include":
            continue
        name = line.tokens[2].text[1:-1]
        for beginning, instead in _HEADERS:
            if name.startswith(beginning):
                number = _number(source, line.tokens[0])
                return Diagnostic(
                    line=number,
                    message=f"not supported on the simulator: <{name}>",
                    excerpt=source_excerpt(source, number),
                    hint=f"use {instead}",
                )
    return None


def _instead(instruction: str) -> str:
    if instruction.startswith(_TENSOR):
        return f"tensor cores: {_ON_A_GPU}"
    for beginning, words in _INSTEAD:
        if instruction.startswith(beginning):
            return f"write {words}"
    return f"write it in CUDA C++ or by a wrapper of <kopt/...>; else {_ON_A_GPU}"


def _statements(source: str) -> list[tuple[int, str]]:
    """Return the line and the instruction to name of each `asm` statement, "" for a barrier."""
    found: list[tuple[int, str]] = []
    for line in logical_lines(source):
        found += _of_line(source, line)
    return found


def _of_line(source: str, line: LogicalLine) -> list[tuple[int, str]]:
    places = [place for place, token in enumerate(line.tokens) if token.text in _ASM]
    return [(_number(source, line.tokens[place]), _first(source, line, place)) for place in places]


def _first(source: str, line: LogicalLine, place: int) -> str:
    """Return the first instruction behind the `asm` at `place`, whose text may go on below."""
    behind = source[line.tokens[place].offset :]
    text: str | None = None
    for following in logical_lines(behind[:2000]):
        for token in following.tokens:
            if token.kind == "string":
                text = (text or "") + token.text.strip('"').replace("\\n", "\n").replace("\\t", " ")
            elif text is not None:
                return _instruction(text)
    return _instruction(text or "")


def _instruction(text: str) -> str:
    """Return the first instruction that the simulator does not know, else the first."""
    text = text[max(0, text.find(unknown_instruction(text))) :]
    match = _INSTRUCTION.search(text)
    if match is not None:
        behind = text[match.end() :].split()
        is_numbered = match[1] in ("bar.sync", "barrier.sync") and behind
        return f"{match[1]} {behind[0].rstrip(';,')}" if is_numbered else match[1]
    return ""


def _number(source: str, token: Token) -> int:
    return source.count("\n", 0, token.offset) + 1
