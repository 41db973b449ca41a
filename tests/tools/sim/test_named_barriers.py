"""Named barriers order memory between those that meet; who does not come is told."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each

HEAD = """
__device__ inline void sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
__device__ inline void arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" :: "r"(number), "r"(threads) : "memory");
}
extern "C" __global__ void k(int* out) {
  __shared__ int tile[128];
  const int t = threadIdx.x, warp = t / 32, lane = t % 32;
"""
PIPELINE = """
  __shared__ int stages[2][64];
  int sum = 0;
  if (warp < 2) {
    for (int i = 0; i < 6; ++i) {
      const int s = i % 2;
      if (i >= 2) sync(3 + s, 128);
      stages[s][t] = i * 100 + t;
      arrive(1 + s, 128);
    }
  } else {
    for (int i = 0; i < 6; ++i) {
      const int s = i % 2;
      sync(1 + s, 128);
      sum += stages[s][127 - t];
      if (i < 4) arrive(3 + s, 128);
    }
  }
  out[t] = sum;
"""


def _case(body: str, threads: int = 128) -> SimCase:
    outputs = {"out": np.zeros(threads, np.int32)}
    return SimCase(f"{HEAD}{body}\n}}", outputs=outputs, block=(threads, 1, 1))


@pytest.mark.parametrize(
    "barrier",
    [
        'asm volatile("bar.sync 1, 64;" ::: "memory");',
        'asm volatile("barrier.sync 1, 64;" ::: "memory");',
        'asm volatile("barrier.cta.sync.aligned 1, 64;" ::: "memory");',
        "__barrier_sync_count(1, 64);",
    ],
)
def test_half_of_a_block_meets_without_the_other(sim: Sim, barrier: str) -> None:
    body = (
        "tile[t] = t;\n"
        f"if (warp < 2) {{ {barrier} out[t] = tile[63 - t]; }}\n"
        "else out[t] = 0;\n"
        "__barrier_sync(3);\n"
        "if (tile[127 - t] != 127 - t) out[t] = -1;"
    )
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(_case(body))["out"]
        np.testing.assert_array_equal(found, [*range(63, -1, -1), *[0] * 64])


def test_producers_and_consumers_pass_stages_on(sim: Sim) -> None:
    expected = [0] * 64 + [1500 + 6 * (127 - t) for t in range(64, 128)]
    for seed in range(6):
        found = sim.with_(seed=seed).outputs(_case(PIPELINE))["out"]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("if (i >= 2) sync(3 + s, 128);", "if (i >= 4) sync(3 + s, 128);"),
        ("arrive(1 + s, 128);", "arrive(1 + s, 128); if (i == 1) stages[s][t] = 7;"),
        ("sum += stages[s][127 - t];\n      if (i < 4) arrive(3 + s, 128);",
         "if (i < 4) arrive(3 + s, 128);\n      sum += stages[s][127 - t];"),
        ("sync(1 + s, 128);\n      sum", "if (warp == 2) arrive(1 + s, 128);"
         " else sync(1 + s, 128);\n      sum"),
    ],
    ids=["too-soon", "stored-after-arrival", "read-after-arrival", "no-wait"],
)  # fmt: skip
def test_what_no_barrier_orders_is_a_race(sim: Sim, given: str, instead: str) -> None:
    changed = PIPELINE.replace(given, instead)
    assert changed != PIPELINE
    for seed in range(4):
        outcome = sim.with_(seed=seed).execute(_case(changed))
        assert outcome.status in (Status.DATA_RACE, Status.BARRIER_DIVERGENCE), seed
        if outcome.status is Status.DATA_RACE:
            return
    raise AssertionError("no order of threads shows the race")


@pytest.mark.parametrize("number", [1, 2])
def test_barrier_of_other_warps_orders_nothing(sim: Sim, number: int) -> None:
    """Warps 0 and 1 meet, and warps 2 and 3: what 0 has stored, 3 may not read."""
    body = (
        "tile[t] = t;\n"
        f"sync(warp < 2 ? 1 : {number}, {64 if number == 2 else 128});\n"
        "out[t] = tile[127 - t];"
    )
    if number == 1:
        assert list(sim.outputs(_case(body))["out"]) == list(range(127, -1, -1))
    else:
        sim.fault(_case(body), Status.DATA_RACE)


def test_order_is_passed_on_from_barrier_to_barrier(sim: Sim) -> None:
    body = (
        "if (warp == 0) tile[lane] = lane;\n"
        "if (warp < 2) sync(1, 64);\n"
        "if (warp == 1 || warp == 2) sync(2, 64);\n"
        "if (warp == 2 || warp == 3) sync(3, 64);\n"
        "out[t] = warp == 3 ? tile[31 - lane] : 0;"
    )
    for seed in range(3):
        found = sim.with_(seed=seed).outputs(_case(body))["out"]
        assert list(found[96:]) == list(range(31, -1, -1))


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("if (warp == 0) sync(1, 64);\nout[t] = 0;", "barrier 1 at line 3 is for 64 threads, of "
         "which 32 have come"),
        ("if (warp < 2) sync(1, 96);\nelse __syncthreads();  // here\nout[t] = 0;",
         "thread 0 waits at line 3 for a named barrier, thread 64 at line 12 for a block barrier"),
        ("sync(1, warp == 0 ? 128 : 96);\nout[t] = 0;", "barrier 1 is for 128 threads at line 3, "
         "for 96 at line 3"),
        ("sync(1, 100);\nout[t] = 0;", "100 threads: no multiple of 32"),
        ("sync(1, 160);\nout[t] = 0;", "for 160 threads, of which the block has 128"),
        ("sync(16, 128);\nout[t] = 0;", "no 16"),
        ("if (warp == 0) { arrive(1, 64); arrive(1, 64); }\nout[t] = 0;",
         "comes to barrier 1 twice before 64 threads have"),
        ("if (lane < 16) sync(1, 128);\nelse sync(2, 128);\nout[t] = 0;",
         "a named barrier at line 3 needs all lanes of its warp"),
        ("if (warp == 0) sync(0, 64);\nelse __syncthreads();\nout[t] = 0;",
         "some threads use this block barrier, 0, with a count of their own at line 3"),
        ("if (warp != 0) sync(0, 64);\nelse __syncthreads();\nout[t] = 0;",
         "barrier 0 is that of __syncthreads(), where others wait"),
    ],
    ids=["missing", "count", "counts", "multiple", "many", "number", "twice", "lanes", "zero",
         "zero-second"],
)  # fmt: skip
def test_wrong_counts_and_missing_arrivals_are_told(sim: Sim, body: str, says: str) -> None:
    found = sim.fault(_case(body), Status.BARRIER_DIVERGENCE)
    assert says in found.message and found.line is not None


def test_barrier_of_all_threads_waits_for_those_that_run(sim: Sim) -> None:
    body = (
        "if (warp == 3) return;\n"
        "tile[t] = t;\n"
        'asm volatile("bar.sync 5;" ::: "memory");\n'
        "out[t] = tile[95 - t];\nif (warp == 0) out[96 + lane] = 0;"
    )
    found = sim.outputs(_case(body))["out"]
    assert list(found[:96]) == list(range(95, -1, -1))


def test_last_warp_that_is_not_full_counts_as_one(sim: Sim) -> None:
    body = "tile[t] = t;\nsync(1, 64);\nout[t] = tile[47 - t];"
    assert list(sim.outputs(_case(body, 48))["out"]) == list(range(47, -1, -1))


def test_refused_barrier_has_the_line(sim: Sim) -> None:
    body = (
        'asm volatile("{.reg .pred p; setp.ne.u32 p, %0, 0; barrier.red.xor.pred p, 1, p;}"'
        ' : "+r"(tile[0]));  // here'
    )
    case = _case(body)
    found = sim.fault(case, Status.UNSUPPORTED_ON_SIM)
    assert "barrier.red" in found.message and found.line == line_of(case.source, "// here")
