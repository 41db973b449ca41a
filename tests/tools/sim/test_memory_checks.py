"""Bounds, alignment, roles and initialisation of every kind of memory, by the byte."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kopt.kernels.plan import Scratch
from kopt.kernels.status import Status
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase, int32, line_of

KERNEL = 'extern "C" __global__ void k'
SIZE = 64
SOURCE = (
    KERNEL
    + """(const char* in, char* out, char* both, char* tmp) {
  __shared__ char low[64];
  __shared__ char fixed[64];
  __shared__ char high[64];
  extern __shared__ char dynamic[];
  low[threadIdx.x] = high[threadIdx.x] = fixed[threadIdx.x] = dynamic[threadIdx.x] = 1;
  tmp[threadIdx.x] = out[threadIdx.x] = in[threadIdx.x] + low[threadIdx.x] + high[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 5) {
    ACCESS;
  }
}"""
)


def _case(access: str) -> SimCase:
    return SimCase(
        SOURCE.replace("ACCESS", access),
        {"in": np.zeros(SIZE, np.int8)},
        {"out": np.zeros(SIZE, np.int8), "both": np.zeros(SIZE, np.int8)},
        inout=frozenset(("both",)),
        scratch=(Scratch(name="tmp", dtype="int8", shape=(SIZE,)),),
        block=(SIZE, 1, 1),
        smem=SIZE,
    )


def _one_of(accesses: Sequence[str], chosen: str) -> SimCase:
    """Return a program with all `accesses`, built once, whose argument names the one it makes."""
    cases = "".join(f"\ncase {n}: {access}; break;" for n, access in enumerate(accesses))
    case = _case(f"switch (which) {{{cases}\n}}")
    source = case.source.replace("char* tmp)", "char* tmp, int which)")
    return replace(case, source=source, scalars=(int32("which", accesses.index(chosen)),))


BEYOND = {
    f"both[0] = {name}[{index}]": (name, index)
    for name in ("in", "out", "both", "tmp", "fixed", "dynamic")
    for index in (-1, SIZE)
}


@pytest.mark.parametrize("access", BEYOND)
def test_one_byte_beyond_either_end_is_out_of_bounds(sim: Sim, access: str) -> None:
    name, index = BEYOND[access]
    reported = "dynamic_smem" if name == "dynamic" else name
    case = _one_of(tuple(BEYOND), access)
    found = sim.fault(case, Status.OUT_OF_BOUNDS)
    assert f"load of `{reported}` at byte {index} of {SIZE}" in found.message
    assert "thread (5, 0, 0)" in found.message
    assert found.line == line_of(case.source, access)


FAR = (
    "*(short*)(out + 63) = 1",
    "*(int4*)(out + 56) = make_int4(1, 1, 1, 1)",
    "out[1 << 30] = 1",
    "out[-(1ll << 31)] = 1",
    "out[1ll << 40] = 1",
    "*(char*)64 = 1",
    "memset(out + 60, 0, 5)",
    "memcpy(out, in + 32, 33)",
    "memmove(dynamic + 1, dynamic, 64)",
    "memset(out + 64, 0, 1 + in[0])",
    "memcpy(out, in + 64, 1 + in[0])",
    "memmove(out + 64, in, 1 + in[0])",
    "atomicAdd((int*)(out + 64), 1)",
)


@pytest.mark.parametrize("access", FAR)
def test_accesses_that_straddle_the_end_or_are_far_away_are_found(sim: Sim, access: str) -> None:
    case = _one_of(FAR, access)
    found = sim.fault(case, Status.OUT_OF_BOUNDS)
    assert found.line == line_of(case.source, access)


MISALIGNED = (
    "*(int*)(out + 2) = 1",
    "*(float4*)(fixed + 8) = make_float4(1, 1, 1, 1)",
    "both[0] = *(const short*)(in + 1)",
    "both[0] = ((const int2*)(in + 2))->y",
    "atomicAdd((int*)(both + 2), 1)",
    "*(double*)(dynamic + 4 * gridDim.x) = 1",
)


@pytest.mark.parametrize("access", MISALIGNED)
def test_misaligned_accesses_are_found(sim: Sim, access: str) -> None:
    case = _one_of(MISALIGNED, access)
    found = sim.fault(case, Status.MISALIGNED)
    assert found.line == line_of(case.source, access)


def test_inputs_are_read_only(sim: Sim) -> None:
    found = sim.fault(_case("((char*)in)[7] = 1"), Status.INPUT_MUTATED)
    assert "1-byte store to the input `in` at byte 7" in found.message


@pytest.mark.parametrize("name", first_quick(["out", "fixed", "tmp", "dynamic"], 2))
def test_reads_of_what_nothing_wrote_are_found(sim: Sim, name: str) -> None:
    source = SOURCE.replace("ACCESS", f"both[0] = {name}[63]")
    half = source.replace("low[threadIdx.x] =", "if (threadIdx.x < 60) low[threadIdx.x] =")
    half = half.replace("  tmp[threadIdx.x]", "  if (threadIdx.x < 60) tmp[threadIdx.x]")
    for seed in (0, 1):
        found = sim.with_(seed=seed).fault(
            replace(_case(""), source=half), Status.UNINITIALIZED_READ
        )
        assert "at byte 63" in found.message
    assert sim.execute(replace(_case(""), source=source)).status is Status.PASSED


@pytest.mark.slow  # two programs
def test_block_copies_that_the_compiler_would_expand_are_refused(sim: Sim) -> None:
    for name in ("__builtin_memcpy(out, in, 33)", "__builtin_memset(out, 0, 33)"):
        found = sim.fault(_case(name), Status.UNSUPPORTED_ON_SIM)
        assert found.line == line_of(SOURCE, "ACCESS")


def test_block_copies_work_on_every_kind_of_memory(sim: Sim) -> None:
    source = (
        KERNEL
        + """(const uint4* in, uint4* out) { __shared__ uint4 s[32]; uint4 local;
      memcpy(&local, in + threadIdx.x, sizeof local); std::memcpy(s + threadIdx.x, &local, 16);
      __syncthreads(); memmove(out + threadIdx.x, s + (threadIdx.x ^ 1), 16);
      memset(&out[threadIdx.x].y, 0, 7); }"""
    )
    x = np.arange(128, dtype=np.uint32)
    out = sim.outputs(SimCase(source, {"in": x}, {"out": np.zeros(512, np.uint8)}))["out"]
    expected = x.reshape(16, 2, 4)[:, ::-1].copy().view(np.uint8).reshape(32, 16)
    expected[:, 4:11] = 0
    np.testing.assert_array_equal(out.reshape(32, 16), expected)


def test_zeroed_scratch_and_inout_count_as_written(sim: Sim) -> None:
    case = _case("both[1] = both[2] + tmp[63]")
    zeroed = Scratch(name="tmp", dtype="int8", shape=(SIZE,), init="zero")
    assert sim.execute(replace(case, scratch=(zeroed,))).status is Status.PASSED


@pytest.mark.slow  # a program of its own
def test_shared_memory_of_an_earlier_block_counts_as_unwritten(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) { __shared__ int s[32];
      if (blockIdx.x == 0) s[threadIdx.x] = 3;
      out[blockIdx.x * 32 + threadIdx.x] = s[threadIdx.x]; }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(64, np.int32)}, grid=(2, 1, 1))
    found = sim.with_(workers=1).fault(case, Status.UNINITIALIZED_READ)
    assert "block (1, 0, 0)" in found.message


def test_what_is_not_written_keeps_the_poison(sim: Sim) -> None:
    source = KERNEL + "(unsigned char* out) { if (threadIdx.x % 2) out[threadIdx.x] = 1; }"
    case = SimCase(source, outputs={"out": np.zeros(32, np.uint8)})
    for poison in (0x00, 0x7F):
        assert sim.with_(poison=poison).outputs(case)["out"].tolist() == [poison, 1] * 16


def test_constant_tables_are_readable(sim: Sim) -> None:
    source = """__constant__ float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};
    __device__ const int codes[3] = {7, 8, 9};
    static constexpr float halves[2] = {0.5f, 0.25f};
    extern "C" __global__ void k(const int* in, float* out) { int i = in[threadIdx.x];
      const float local[4] = {1, 2, 4, 8};
      out[threadIdx.x] = table[i] + codes[i % 3] + halves[i % 2] + local[i]; }"""
    x = np.arange(32, dtype=np.int32) % 4
    out = sim.outputs(SimCase(source, {"in": x}, {"out": np.zeros(32, np.float32)}))["out"]
    expected = 0.5 + x + 7 + x % 3 + np.where(x % 2, 0.25, 0.5) + 2.0**x
    np.testing.assert_array_equal(out, expected)


@pytest.mark.slow  # a program of its own
def test_a_table_of_zeros_is_a_table(sim: Sim) -> None:
    source = """__constant__ float zeros[2] = {0.0f, 0.0f};
    __constant__ const int more[3] = {0, 0, 0};
    extern "C" __global__ void k(float* out) {
      out[threadIdx.x] = zeros[threadIdx.x % 2] + more[threadIdx.x % 3]; }"""
    out = sim.outputs(SimCase(source, outputs={"out": np.ones(32, np.float32)}))["out"]
    assert not out.any()


@pytest.mark.slow  # a program of its own
def test_a_store_to_a_table_is_out_of_bounds(sim: Sim) -> None:
    source = """__constant__ float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};
    extern "C" __global__ void k(float* out) { ((float*)table)[threadIdx.x % 4] = 1;
      out[threadIdx.x] = table[0]; }"""
    case = SimCase(source, outputs={"out": np.zeros(32, np.float32)})
    assert sim.execute(case).status is Status.OUT_OF_BOUNDS


STRUCT = "struct Row { float x[4]; };\n"


@pytest.mark.parametrize(
    "definition",
    first_quick(
        [
            "__attribute__((noinline)) float iffy(Row r) { return r.x[0] + r.x[3]; }",
            "struct Op { float operator()(Row r) const; };\n"
            "__attribute__((noinline)) float Op::operator()(Row r) const { return r.x[1]; }\n"
            "static const Op iffy;",
            "static float one(Row r) { return r.x[1]; }\n"
            "static float two(Row r) { return r.x[2]; }\n"
            "#define iffy(r) (threadIdx.x % 2 ? one : two)(r)",
        ],
        1,
    ),
)
def test_a_call_that_takes_a_struct_from_memory_is_refused_unless_inlined(
    sim: Sim, definition: str
) -> None:
    source = f"{STRUCT}{definition}\n{KERNEL}(const Row* in, float* out) {{\n" + (
        "  out[threadIdx.x] = iffy(in[8]);\n}"
    )
    inputs, outputs = {"in": np.zeros(32, np.float32)}, {"out": np.zeros(32, np.float32)}
    found = sim.fault(SimCase(source, inputs, outputs), Status.UNSUPPORTED_ON_SIM)
    assert "takes a struct from memory" in found.message
    inlined = (
        f"{STRUCT}__device__ float iffy(Row r) {{ return r.x[0] + r.x[3]; }}\n"
        f"{KERNEL}(const Row* in, float* out) {{ out[threadIdx.x] = iffy(in[8]); }}"
    )
    assert sim.execute(SimCase(inlined, inputs, outputs)).status is Status.OUT_OF_BOUNDS


@pytest.mark.slow  # three programs
def test_shared_structs_that_a_call_returns_or_takes_are_refused(sim: Sim) -> None:
    define = (
        STRUCT + "__attribute__((noinline)) Row make(int n) { Row r{}; r.x[n] = 1; return r; }\n"
    )
    for body in ("out[0] = make(1);", "__shared__ Row s; s = make(2); out[0] = s;"):
        case = SimCase(
            f"{define}{KERNEL}(Row* out) {{\n{body} }}", outputs={"out": np.zeros(4, np.float32)}
        )
        assert sim.fault(case, Status.UNSUPPORTED_ON_SIM).line == 4, body
    local = f"{define}{KERNEL}(Row* out) {{ Row r = make(1); out[threadIdx.x] = r; }}"
    assert sim.outputs(SimCase(local, outputs={"out": np.zeros(128, np.float32)}))["out"][1] == 1
