"""Values that the blocks of a cluster send one another, counted by mbarriers."""

from dataclasses import replace

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each
BLOCKS, THREADS = 8, 64
HEAD = """#include <cooperative_groups.h>
#include <kopt/cluster_exchange.cuh>
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ float parts[4][2];
  __shared__ kopt::mbarrier_t arrived;
  const unsigned rank = kopt::cluster_rank(), warp = threadIdx.x / 32, lane = threadIdx.x % 32;
"""
PROLOGUE = """
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&arrived, 1);
    kopt::mbarrier_arrive_expect_tx(&arrived, 32);
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
"""
MEET = "  kopt::cluster_arrive_relaxed();\n  kopt::cluster_wait();\n"
WARP_SUM = """
  float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
"""
SEND = "  if (lane < 4) kopt::st_async(&parts[rank][warp], sum, &arrived, lane);  // send\n"
WAIT = "  kopt::mbarrier_wait_parity_cluster(&arrived, 0);  // wait\n"
READ = """
  float total = 0;
  for (int i = 0; i < 8; ++i) total += parts[i / 2][i % 2];  // read
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
"""
CLUSTER_SUM = PROLOGUE + MEET + WARP_SUM + SEND + WAIT + READ
X = np.arange(BLOCKS * THREADS, dtype=np.float32).reshape(BLOCKS, THREADS)


def case(body: str) -> SimCase:
    """Return a kernel of two clusters of four blocks."""
    return SimCase(
        f"{HEAD}{body}\n}}",
        inputs={"in": X},
        outputs={"out": np.zeros_like(X)},
        grid=(BLOCKS, 1, 1),
        block=(THREADS, 1, 1),
        cluster=(4, 1, 1),
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_row_is_summed_over_its_cluster_in_any_order(sim: Sim, seed: int) -> None:
    outcome = sim.with_(seed=seed).execute(case(CLUSTER_SUM))
    assert outcome.status is Status.PASSED, outcome.diagnostics
    expected = np.repeat(X.reshape(2, -1).sum(axis=1), 4)[:, None]
    np.testing.assert_array_equal(outcome.outputs["out"], np.broadcast_to(expected, X.shape))
    assert outcome.cpu_bodies == ("cluster_arrive_relaxed", "mbarrier", "st_async")


def test_a_second_exchange_has_elements_and_an_mbarrier_of_its_own(sim: Sim) -> None:
    prologue = PROLOGUE.replace(
        "    kopt::fence",
        """    kopt::mbarrier_init(&again, 1);
    kopt::mbarrier_arrive_expect_tx(&again, 32);
    kopt::fence""",
    )
    second = """
  if (lane < 4) kopt::st_async(&best[rank][warp], total + rank, &again, lane);
  kopt::mbarrier_wait_parity_cluster(&again, 0);
  out[blockIdx.x * blockDim.x + threadIdx.x] = best[3][1] - best[0][0];
"""
    body = "__shared__ float best[4][2]; __shared__ kopt::mbarrier_t again;" + (
        prologue + MEET + WARP_SUM + SEND + WAIT + READ + second
    )
    for seed in range(3):
        assert (sim.with_(seed=seed).outputs(case(body))["out"] == 3).all()


def test_too_few_bytes_are_a_deadlock_that_names_the_mbarrier(sim: Sim) -> None:
    few = case(CLUSTER_SUM.replace("if (lane < 4)", "if (lane < 4 && (rank != 2 || lane != 1))"))
    for seed in range(3):
        found = sim.with_(seed=seed).fault(few, Status.BARRIER_DIVERGENCE)
        assert "`arrived`" in found.message
        assert "lacks 0 arrivals and 8 bytes" in found.message
        assert found.hint is not None and "mbarrier_arrive_expect_tx" in found.hint
        assert "block (1, 0, 0)" in found.message or "block (5, 0, 0)" in found.message
        assert found.line == line_of(few.source, "// wait")


def test_the_block_that_keeps_the_others_waiting_is_named(sim: Sim) -> None:
    apart = "if (rank == 2) { if (warp == 0) __syncthreads(); else\n" + WAIT + "}"
    stuck = case(PROLOGUE + MEET + WARP_SUM + apart + SEND + WAIT.replace("// wait", "") + READ)
    for seed in range(3):
        found = sim.with_(seed=seed).fault(stuck, Status.BARRIER_DIVERGENCE)
        assert "block (2, 0, 0)" in found.message or "block (6, 0, 0)" in found.message
        assert "a block barrier" in found.message and "an mbarrier" in found.message


FAULTS = {
    "sent before the cluster barrier": (
        PROLOGUE + WARP_SUM + SEND + MEET + WAIT + READ,
        Status.DATA_RACE,
        "need not have started",
        "// send",
    ),
    "to a block that has ended": (
        PROLOGUE + MEET + "if (rank == 3) return;" + MEET + WARP_SUM + SEND + WAIT + READ,
        Status.DATA_RACE,
        "has ended",
        "// send",
    ),
    "an end before the value has come": (
        PROLOGUE + MEET + WARP_SUM + SEND + MEET + "if (rank == 0) return;" + WAIT + READ,
        Status.DATA_RACE,
        "may end before a value that is sent to it has come",
        "// send",
    ),
    "a wait for fewer bytes than are sent": (
        PROLOGUE.replace("32)", "rank == 1 ? 28 : 32)") + MEET + WARP_SUM + SEND + MEET + WAIT,
        Status.DATA_RACE,
        "more bytes are sent to block",
        "// send",
    ),
    "an end before the phase of a late value": (
        CLUSTER_SUM.replace("lane < 4", "lane < 4 && (rank != 3 || warp == 0 || lane != 1)")
        .replace("32)", "rank == 1 ? 28 : 32)")
        .replace(READ, MEET)
        + "if (rank == 3 && threadIdx.x == 33) kopt::st_async(&parts[3][1], sum, &arrived, 1);"
        + MEET
        + WAIT,
        Status.DATA_RACE,
        "may end before a value that is sent to it has come",
        None,
    ),
    "a second exchange over the mbarrier of the first": (
        CLUSTER_SUM
        + """__shared__ float best[4][2]; __syncthreads();
  if (threadIdx.x == 0) kopt::mbarrier_arrive_expect_tx(&arrived, 32);
  if (lane < 4) kopt::st_async(&best[rank][warp], total, &arrived, lane);  // again
  kopt::mbarrier_wait_parity_cluster(&arrived, 1);""",
        Status.DATA_RACE,
        "a second exchange needs its own mbarrier",
        "// again",
    ),
    "to an mbarrier that is not initialised": (
        CLUSTER_SUM.replace("== 0) {", "== 0 && rank != 1) {").replace("lane < 4", "lane == 1"),
        Status.UNINITIALIZED_READ,
        "not initialised by the block that the value is sent to",
        "// send",
    ),
    "read before the wait": (
        PROLOGUE + MEET + WARP_SUM + SEND + READ + WAIT,
        Status.DATA_RACE,
        "`parts`",
        None,
    ),
    "two values to one element": (
        CLUSTER_SUM.replace("parts[rank][warp], sum", "parts[rank / 2][warp], sum"),
        Status.DATA_RACE,
        "stored to it",
        "// send",
    ),
    "a second value while the first is read": (
        CLUSTER_SUM
        + """if (threadIdx.x == 0) kopt::mbarrier_arrive_expect_tx(&arrived, 32);
  if (lane < 4) kopt::st_async(&parts[rank][warp], total, &arrived, lane);
  kopt::mbarrier_wait_parity_cluster(&arrived, 1);""",
        Status.DATA_RACE,
        "`parts`",
        None,
    ),
    "an element too many": (
        CLUSTER_SUM.replace("&parts[rank][warp]", "&parts[0][8]"),
        Status.OUT_OF_BOUNDS,
        "`parts`",
        "// send",
    ),
    "a misaligned element": (
        CLUSTER_SUM.replace("&parts[rank][warp]", "(float*)((char*)parts + 2)"),
        Status.MISALIGNED,
        "`parts`",
        "// send",
    ),
    "a rank that is none": (
        CLUSTER_SUM.replace("lane < 4", "lane < 5"),
        Status.OUT_OF_BOUNDS,
        "rank 4 of a cluster of 4 blocks",
        "// send",
    ),
    "global memory": (
        CLUSTER_SUM.replace("&parts[rank][warp]", "out"),
        Status.OUT_OF_BOUNDS,
        "not in shared memory",
        "// send",
    ),
}


@pytest.mark.parametrize(("body", "status", "said", "place"), FAULTS.values(), ids=FAULTS)
def test_mistakes_are_found_in_any_order(
    sim: Sim, body: str, status: Status, said: str, place: str | None
) -> None:
    broken = case(body)
    found = sim.fault(broken, status)
    assert said in found.message
    assert found.line is not None
    if place is not None:
        assert found.line == line_of(broken.source, place)
    for seed in (1, 2, 3):
        assert sim.with_(seed=seed).execute(broken).status is status


CLUSTER = "cooperative_groups::this_cluster()"
NEEDS_ORDER = {
    "another block's shared memory": f"""
  __shared__ float own[64];
  own[threadIdx.x] = rank; MEET
  *o = {CLUSTER}.map_shared_rank(own, rank ^ 1)[threadIdx.x] - (rank ^ 1);
""",
    "the own block's shared memory": """
  __shared__ float own[64];
  own[threadIdx.x] = 0; MEET
  *o = own[threadIdx.x ^ 32];
""",
    "global memory": """
  *o = 1; MEET
  out[(blockIdx.x ^ 1) * blockDim.x + threadIdx.x] = 0;
""",
}


@pytest.mark.parametrize("body", NEEDS_ORDER.values(), ids=NEEDS_ORDER)
def test_the_relaxed_barrier_orders_no_memory(sim: Sim, body: str) -> None:
    body = "float* o = out + blockIdx.x * blockDim.x + threadIdx.x;" + body
    sync = f"{CLUSTER}.sync();"
    for seed in range(3):
        here = sim.with_(seed=seed)
        assert (here.outputs(case(body.replace("MEET", sync) + sync))["out"] == 0).all()
        relaxed = here.execute(case(body.replace("MEET", MEET) + sync))
        assert relaxed.status is Status.DATA_RACE


def test_the_relaxed_barrier_does_not_pass_the_wait_for_the_launch_before_on(sim: Sim) -> None:
    body = """if (rank == 0) kopt::griddepcontrol_wait(); MEET
      out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];"""
    head = "#include <kopt/griddepcontrol.cuh>\n"
    for meet, status in ((f"{CLUSTER}.sync();", Status.PASSED), (MEET, Status.DATA_RACE)):
        dependent = case(body.replace("MEET", meet))
        dependent = replace(dependent, source=head + dependent.source, pdl=True)
        assert sim.execute(dependent).status is status


def test_a_barrier_after_a_relaxed_one_orders_what_came_before_both(sim: Sim) -> None:
    body = f"""float* o = out + blockIdx.x * blockDim.x + threadIdx.x;
      __shared__ float own[64], late[64];
      own[threadIdx.x] = rank; kopt::cluster_arrive_relaxed();
      late[threadIdx.x] = rank; kopt::cluster_wait(); {CLUSTER}.sync();
      *o = {CLUSTER}.map_shared_rank(own, rank ^ 1)[threadIdx.x]
           - {CLUSTER}.map_shared_rank(late, rank ^ 1)[threadIdx.x];
      {CLUSTER}.sync();"""
    for seed in range(3):
        assert (sim.with_(seed=seed).outputs(case(body))["out"] == 0).all()


def test_a_relaxed_barrier_does_not_pass_on_what_came_after_an_arrival(sim: Sim) -> None:
    body = f"""__shared__ float own[64];
      {CLUSTER}.barrier_arrive(); own[threadIdx.x] = rank; {CLUSTER}.barrier_wait(); MEET
      out[blockIdx.x * blockDim.x + threadIdx.x] =
          {CLUSTER}.map_shared_rank(own, rank ^ 1)[threadIdx.x] - (rank ^ 1);
      {CLUSTER}.sync();"""
    for seed in range(3):
        here = sim.with_(seed=seed)
        assert (here.outputs(case(body.replace("MEET", f"{CLUSTER}.sync();")))["out"] == 0).all()
        assert here.execute(case(body.replace("MEET", MEET))).status is Status.DATA_RACE
