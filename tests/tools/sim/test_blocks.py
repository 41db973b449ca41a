"""Blocks and their threads: indices, barriers, shared memory of every declaration."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch
from kopt.kernels.status import Status
from kopt.tools.sim.program import build_program
from kopt.tools.sim.program_facts import SimProgram
from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase, int32, line_of

KERNEL = 'extern "C" __global__ void k'


def test_indices_of_three_dimensional_grids_and_blocks(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      out[block * 105 + thread] = (blockIdx.z * 100 + blockIdx.y * 10 + blockIdx.x) * 1000 +
          threadIdx.z * 100 + threadIdx.y * 10 + threadIdx.x + warpSize - 32;
    }"""
    )
    case = SimCase(
        source,
        outputs={"out": np.zeros(12 * 105, np.int32)},
        grid=(3, 2, 2),
        block=(7, 5, 3),
    )
    for seed in (0, 1):
        out = sim.with_(seed=seed).outputs(case)["out"].reshape(2, 2, 3, 3, 5, 7)
        bz, by, bx, z, y, x = np.indices(out.shape)
        np.testing.assert_array_equal(out, (bz * 100 + by * 10 + bx) * 1000 + z * 100 + y * 10 + x)


def test_barriers_with_votes(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      const int t = threadIdx.x;
      out[t] = __syncthreads_count(t % 3 == 0) * 1000 + __syncthreads_and(t < 96) * 100 +
               __syncthreads_and(t < 95) * 10 + __syncthreads_or(t == 77);
    }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(96, np.int32)}, block=(96, 1, 1))
    for seed in (0, 1):
        assert sim.with_(seed=seed).outputs(case)["out"].tolist() == [32 * 1000 + 101] * 96


def test_early_exits_do_not_hold_up_a_barrier(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      __shared__ int s[64];
      if (threadIdx.x >= 50) return;
      s[threadIdx.x] = threadIdx.x;
      __syncthreads();
      out[threadIdx.x] = s[49 - threadIdx.x];
    }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(50, np.int32)}, block=(64, 1, 1))
    assert sim.outputs(case)["out"].tolist() == list(range(49, -1, -1))


@pytest.mark.parametrize(
    ("body", "words"),
    first_quick(
        [
            (
                "if (threadIdx.x < 40)\n__syncthreads(); // first\nelse\n__syncthreads();",
                "threads of one block meet at different barriers, lines 3 and 5",
            ),
            (
                "if (threadIdx.x < 32)\n__syncthreads(); // first\nelse { __syncthreads();"
                " if (threadIdx.x > 40)\n __syncthreads(); else __syncwarp();\n}",
                "barriers",
            ),
            (
                "if (threadIdx.x < 8)\n__syncthreads(); // first\n"
                "else if (threadIdx.x < 32) __shfl_sync(0xffffffffu, 1, 0);",
                "thread 0 waits at line 3 for a block barrier,"
                " thread 8 at line 4 for a warp shuffle",
            ),
        ],
        1,
    ),
)
def test_diverged_barriers_name_lines_and_threads(sim: Sim, body: str, words: str) -> None:
    source = f"{KERNEL}(int* out) {{\n{body}\n}}"
    case = SimCase(source, outputs={"out": np.zeros(1, np.int32)}, block=(64, 1, 1))
    found = sim.fault(case, Status.BARRIER_DIVERGENCE)
    assert words in found.message
    assert found.line == line_of(source, "// first")
    assert found.excerpt is not None
    assert "__syncthreads" in found.excerpt


SHARED_FORMS = """
__shared__ int file_scope[32];
namespace deep { namespace er { extern __shared__ unsigned char bytes[]; } }
extern __shared__ __align__(16) float floats[];
template <typename T, int N> __device__ T* pool() { __shared__ T own[N]; return own; }
struct Pair { float x; int y; };
__device__ float sum_of_block(float v) {
  __shared__ float partial[32];
  partial[threadIdx.x] = v;
  __syncthreads();
  float s = 0;
  for (float p : partial) s += p;
  __syncthreads();
  return s;
}
extern "C" __global__ void k(float* out) {
  const int t = threadIdx.x;
  __shared__ alignas(16) float4 vectors[32];
  __shared__ Pair pairs[32];
  __shared__ int matrix[2][32];
  extern __shared__ __nv_bfloat162 narrow[];
  file_scope[t] = t;
  vectors[t] = make_float4(t, 1, 2, 3);
  pairs[t] = {0.5f, t};
  matrix[1][t] = t; matrix[0][t] = 2 * t;
  pool<int, 32>()[t] = 3 * t; pool<float, 32>()[t] = 4.0f * t;
  floats[t] = t;
  deep::er::bytes[128 + t] = t;
  __syncthreads();
  const int o = 31 - t;
  float v = file_scope[o] + vectors[o].x + vectors[o].w + pairs[o].x + pairs[o].y + matrix[1][o] +
            matrix[0][o] + pool<int, 32>()[o] + pool<float, 32>()[o] + floats[o] +
            deep::er::bytes[128 + o];
  __syncthreads();
  narrow[t] = __nv_bfloat162(__float2bfloat16(1.0f), __float2bfloat16(2.0f));
  __syncthreads();
  out[t] = v + sum_of_block(1.0f) + sum_of_block(2.0f) + __high2float(narrow[o]);
}
extern "C" __global__ void second(float* out) {
  __shared__ float vectors[8];
  if (threadIdx.x < 8) vectors[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = vectors[7 - threadIdx.x];
}
"""


@pytest.mark.parametrize("seed", [0, 1])
def test_shared_memory_of_every_form(sim: Sim, seed: int) -> None:
    out = Argument(kind="tensor", name="out")
    launches = tuple(
        Launch(kernel=n, grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=b, arguments=(out,))
        for n, b in (("k", 160), ("second", 0))
    )
    case = SimCase(SHARED_FORMS, outputs={"out": np.zeros(32, np.float32)}, launches=launches)
    values = sim.with_(seed=seed).outputs(case)["out"]
    o = 31 - np.arange(32)
    expected = o * (1 + 1 + 1 + 1 + 2 + 3 + 4 + 1 + 1) + 3 + 0.5 + 96 + 2
    expected[:8] = expected[:8][::-1].copy()
    np.testing.assert_array_equal(values, expected)


BEYOND = {
    "file_scope": "file_scope[32]",
    "vectors": "vectors[32].x",
    "pairs": "((char*)pairs)[256]",
    "matrix": "matrix[2][0]",
    "own": "pool<int, 32>()[32]",
    "dynamic_smem": "deep::er::bytes[160]",
    "partial": "",  # within sum_of_block
}


@pytest.mark.parametrize("name", BEYOND)
def test_each_form_of_shared_memory_ends_where_it_ends(sim: Sim, name: str) -> None:
    # One program has all accesses, and its argument names the one that is made.
    order = list(BEYOND)
    cases = "".join(
        f"case {order.index(at)}: {one} = 1; break;\n" for at, one in BEYOND.items() if one
    )
    source = SHARED_FORMS.replace("(float v)", "(float v, int beyond = 0)")
    for before, after in (
        ("partial[threadIdx.x] = v", "partial[threadIdx.x + beyond] = v"),
        ("sum_of_block(1.0f)", f"sum_of_block(1.0f, which == {order.index('partial')})"),
        ("void k(float* out)", "void k(float* out, int which)"),
        ("float v = file_scope", f"switch (which) {{\n{cases}}}\nfloat v = file_scope"),
    ):
        source = source.replace(before, after)
    arguments = (Argument(kind="tensor", name="out"), int32("which", order.index(name)))
    launch = Launch(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=160, arguments=arguments
    )
    case = SimCase(source, outputs={"out": np.zeros(32, np.float32)}, launches=(launch,))
    found = sim.fault(case, Status.OUT_OF_BOUNDS)
    assert f"`{name}`" in found.message
    assert found.line == line_of(source, f"{BEYOND[name] or 'partial[threadIdx.x + beyond]'} = ")


def test_shared_arrays_of_one_name_in_two_scopes_are_called_by_it(sim: Sim) -> None:
    source = f"""{KERNEL}(float* out) {{
  const int i = threadIdx.x;
  {{ __shared__ float part[32]; part[i] = i; __syncthreads(); out[i] = part[31 - i]; }}
  {{ __shared__ float part[32]; part[i + 1] = i; __syncthreads(); out[i] += part[31 - i]; }}
}}"""
    case = SimCase(source, outputs={"out": np.zeros(32, np.float32)}, block=(32, 1, 1))
    assert "`part`" in sim.fault(case, Status.OUT_OF_BOUNDS).message


def test_specialisation_defines_reach_the_source(sim: Sim) -> None:
    source = KERNEL + "(int* out) { out[threadIdx.x] = BLOCK * 10 + KOPT_H; }"
    case = SimCase(
        source, outputs={"out": np.zeros(32, np.int32)}, defines={"BLOCK": 7, "KOPT_H": 3}
    )
    assert sim.outputs(case)["out"].tolist() == [73] * 32


def _running_commands() -> str:
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has ended by now
            found.append(path.read_text("utf-8", "replace"))
    return "\n".join(found)


def test_a_loop_that_never_ends_gives_its_line_and_leaves_no_process(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) {
      out[threadIdx.x] = 0;
      while (out[threadIdx.x] < 2)
        out[threadIdx.x] ^= 1;  // spins
    }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)}, grid=(4, 1, 1))
    found = sim.with_(timeout_s=0.5).fault(case, Status.TIMEOUT)
    assert found.line in (line_of(source, "// spins"), line_of(source, "while"))
    program = build_program(case.program, sim.settings)
    assert isinstance(program, SimProgram)
    assert program.executable not in _running_commands()


@pytest.mark.slow  # a program for each
@pytest.mark.parametrize(
    "body",
    [
        "volatile char big[65536 * 4]; big[threadIdx.x] = 1; out[0] = big[threadIdx.x];",
        "float big[40000]; for (int i = 0; i < 40000; ++i) big[i] = out[0] * i;"
        " float s = 0; for (int i = 0; i < 40000; ++i) s += big[(i * 7) % 40000]; out[0] = s;",
    ],
)
def test_locals_beyond_the_stack_say_so(sim: Sim, body: str) -> None:
    case = SimCase(f"{KERNEL}(float* out) {{ {body} }}", outputs={"out": np.zeros(1, np.float32)},
                   inout=frozenset(("out",)))  # fmt: skip
    found = sim.fault(case, Status.CRASH)
    assert "need more than 128 KiB of stack" in found.message
    assert found.line == 1


@pytest.mark.slow  # a program of its own
def test_locals_of_64_kib_run(sim: Sim) -> None:
    source = (
        KERNEL
        + """(int* out) { volatile int big[16384]; big[16383] = threadIdx.x;
      out[threadIdx.x] = big[16383]; }"""
    )
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)})
    assert sim.outputs(case)["out"].tolist() == list(range(32))


@pytest.mark.slow  # a program of its own
def test_endless_recursion_is_a_crash(sim: Sim) -> None:
    source = """struct Deep { int (*f)(const Deep&, int); };
    int dive(const Deep& d, int n) { volatile int pad[64]; pad[n % 64] = n;
      return n < 0 ? 0 : d.f(d, n + 1) + pad[n % 64]; }
    extern "C" __global__ void k(int* out) { Deep d{dive};
      out[threadIdx.x] = d.f(d, threadIdx.x); }"""
    found = sim.fault(SimCase(source, outputs={"out": np.zeros(32, np.int32)}), Status.CRASH)
    assert "stack" in found.message


@pytest.mark.slow  # two programs
def test_a_division_by_zero_and_a_trap_are_crashes(sim: Sim) -> None:
    for statement, words in (("out[1] = 7 / out[0];", "Floating point"), ("__trap();", "__trap()")):
        source = f"{KERNEL}(int* out) {{ out[0] = 0;\n{statement} }}"
        case = SimCase(source, outputs={"out": np.zeros(2, np.int32)}, block=(1, 1, 1))
        found = sim.fault(case, Status.CRASH)
        assert words in found.message
        assert found.line == 2
