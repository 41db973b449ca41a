"""cp.async, mbarriers, bulk copies and wide accesses, through the wrappers of kernels/common."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each

KERNEL = 'extern "C" __global__ void k'
X = np.arange(256, dtype=np.float32)

PIPELINE = (
    "#include <kopt/cp_async.cuh>\n"
    + KERNEL
    + """(const float* in, float* out) {
  __shared__ alignas(16) float s[2][128];
  const int t = threadIdx.x;
  for (int stage = 0; stage < 2; ++stage) {
    kopt::cp_async<16>(&s[stage][4 * t], in + 128 * stage + 4 * t);
    kopt::cp_async_commit_group();
  }
  for (int stage = 0; stage < 2; ++stage) {
    if (stage == 0) kopt::cp_async_wait_group<1>(); else kopt::cp_async_wait_group<0>();
    BARRIER
    for (int i = 0; i < 4; ++i) out[128 * stage + 4 * t + i] = s[stage][127 - 4 * t - i];  // read
  }
}"""
)


def _case(source: str, outputs: int = 256, block: int = 32) -> SimCase:
    shape = np.zeros(outputs, np.float32)
    return SimCase(source, {"in": X}, {"out": shape}, block=(block, 1, 1))


def test_a_pipeline_of_copies(sim: Sim) -> None:
    case = _case(PIPELINE.replace("BARRIER", "__syncthreads();"))
    outcome = sim.execute(case)
    expected = np.concatenate([X[127::-1], X[:127:-1]])
    np.testing.assert_array_equal(outcome.outputs["out"], expected)
    assert outcome.cpu_bodies == ("cp_async",)


def test_reading_before_the_wait_or_without_a_barrier_is_found(sim: Sim) -> None:
    late = PIPELINE.replace("kopt::cp_async_wait_group<1>()", "__syncwarp()")
    # A quick thread's second wait may land its copies while a slow one reads: then it is a race.
    found = sim.fault(_case(late.replace("BARRIER", "__syncthreads();")), Status.DATA_RACE)
    assert found.line == line_of(late, "// read")
    never = PIPELINE.replace("else kopt::cp_async_wait_group<0>()", "").replace("<1>()", "<2>()")
    case = _case(never.replace("BARRIER", "__syncthreads();"))
    assert sim.execute(case).status is Status.UNINITIALIZED_READ
    case = _case(PIPELINE.replace("BARRIER", ""))
    for seed in (0, 1):
        assert sim.with_(seed=seed).execute(case).status is Status.DATA_RACE


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ("kopt::cp_async<16>(s, in + 256)", Status.OUT_OF_BOUNDS),
        ("kopt::cp_async<4>(s + 64, in)", Status.OUT_OF_BOUNDS),
        ("kopt::cp_async<16>(s + 2, in)", Status.MISALIGNED),
        ("kopt::cp_async<8>(s, in + 1)", Status.MISALIGNED),
        ("kopt::cp_async<16>(s, out)", Status.UNINITIALIZED_READ),
        ("__pipeline_memcpy_async(s, in + 256, 16, 15)", Status.OUT_OF_BOUNDS),
    ],
)
def test_faults_of_a_copy_name_the_line_that_started_it(
    sim: Sim, call: str, status: Status
) -> None:
    source = f"""#include <cuda_pipeline_primitives.h>
    #include <kopt/cp_async.cuh>
    {KERNEL}(const float* in, float* out) {{ __shared__ alignas(16) float s[64];
      {call};
      kopt::cp_async_commit_group();
      kopt::cp_async_wait_group<0>();
    }}"""
    assert sim.fault(_case(source, block=1), status).line == 4


def test_a_zero_filled_copy_reads_nothing(sim: Sim) -> None:
    source = f"""#include <kopt/cp_async.cuh>
    {KERNEL}(const float* in, float* out) {{ __shared__ alignas(16) float s[128];
      const int t = threadIdx.x;
      kopt::cp_async_zfill_16(s + 4 * t, in + 4 * t + 1000 * (t > 7), t <= 7);
      kopt::cp_async_commit_group(); kopt::cp_async_wait_group<0>();
      for (int i = 0; i < 4; ++i) out[4 * t + i] = s[4 * t + i]; }}"""
    out = sim.outputs(_case(source, 128))["out"]
    np.testing.assert_array_equal(out, np.where(np.arange(128) < 32, X[:128], 0))


BULK = """#include <kopt/bulk_copy.cuh>
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(128) float s[2][64];
  __shared__ kopt::mbarrier_t full[2];
  const int t = threadIdx.x;
  if (t == 0) {
    kopt::mbarrier_init(&full[0], 1); kopt::mbarrier_init(&full[1], 1);
    kopt::fence_mbarrier_init();
  }
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    if (t == 0) {
      kopt::mbarrier_arrive_expect_tx(&full[i % 2], 256);
      kopt::bulk_load(s[i % 2], in + 64 * i, 256, &full[i % 2]);
    }
    kopt::mbarrier_wait_parity(&full[i % 2], i / 2 % 2);  // wait
    s[i % 2][t] *= 2;
    kopt::fence_proxy_async();
    __syncthreads();
    if (t == 0) {
      kopt::bulk_store(out + 64 * i, s[i % 2], 256);
      kopt::bulk_commit_group();
      kopt::bulk_wait_group<0>();
    }
    __syncthreads();
  }
}"""


def test_bulk_copies_through_mbarriers(sim: Sim) -> None:
    for seed in (0, 1, 2):
        outcome = sim.with_(seed=seed).execute(_case(BULK, block=64))
        np.testing.assert_array_equal(outcome.outputs["out"], 2 * X)
        assert outcome.cpu_bodies == ("bulk_load", "bulk_store", "mbarrier")


def test_mbarriers_that_never_complete_or_were_never_made_are_told(sim: Sim) -> None:
    short = BULK.replace("in + 64 * i, 256,", "in + 64 * i, 240,")
    found = sim.fault(_case(short, block=64), Status.BARRIER_DIVERGENCE)
    assert "lacks 0 arrivals and 16 bytes" in found.message
    assert found.line == line_of(short, "// wait")
    none = BULK.replace("mbarrier_init(&full[0], 1)", "mbarrier_init(&full[0], 0)")
    found = sim.fault(_case(none, block=64), Status.BARRIER_DIVERGENCE)
    assert "lacks -1 arrivals and 0 bytes" in found.message
    unmade = BULK.replace("kopt::mbarrier_init(&full[1], 1);", "")
    found = sim.fault(_case(unmade, block=64), Status.UNINITIALIZED_READ)
    assert "was not initialised" in found.message
    assert found.line == line_of(unmade, "expect_tx")


def test_a_bulk_load_that_nobody_waited_for_has_not_landed(sim: Sim) -> None:
    early = BULK.replace("kopt::mbarrier_wait_parity(&full[i % 2], i / 2 % 2);", "")
    assert sim.execute(_case(early, block=64)).status is Status.UNINITIALIZED_READ
    lost = BULK.replace("kopt::bulk_wait_group<0>();", "")
    out = sim.outputs(_case(lost, block=64))["out"]
    assert len(set(out.view(np.uint32).tolist())) == 1  # the poison: no store took place


def test_a_wait_for_a_phase_that_is_over_lands_nothing(sim: Sim) -> None:
    over = """#include <kopt/bulk_copy.cuh>
extern "C" __global__ void k(const float* in, float* out) {
  __shared__ alignas(128) float s[64];
  __shared__ kopt::mbarrier_t full;
  const int t = threadIdx.x;
  if (t == 0) {
    kopt::mbarrier_init(&full, 2);
    kopt::mbarrier_arrive_expect_tx(&full, 256);
    kopt::bulk_load(s, in, 256, &full);
  }
  __syncthreads();
  kopt::mbarrier_wait_parity(&full, 1);
  out[t] = s[t];  // use
  if (t == 1) kopt::mbarrier_arrive(&full);
}"""
    found = sim.fault(_case(over, block=64), Status.UNINITIALIZED_READ)
    assert found.line == line_of(over, "// use")


def test_a_phase_wakes_no_thread_that_waits_elsewhere_by_then(sim: Sim) -> None:
    source = f"""#include <kopt/bulk_copy.cuh>
    {KERNEL}(const float* in, float* out) {{
      __shared__ kopt::mbarrier_t ready, taken;
      __shared__ float s;
      const int t = threadIdx.x;
      if (t == 0) {{ kopt::mbarrier_init(&ready, 1); kopt::mbarrier_init(&taken, 1); }}
      __syncthreads();
      if (t == 32) {{
        kopt::mbarrier_arrive(&ready);
        kopt::mbarrier_wait_parity(&taken, 0);
        kopt::mbarrier_arrive(&ready);
        __nanosleep(20);
        s = in[1];
      }} else if (t == 0) {{
        kopt::mbarrier_wait_parity(&ready, 0);
        kopt::mbarrier_arrive(&taken);
      }}
      __syncthreads();
      out[t] = s;
    }}"""
    for seed in range(3):
        assert (sim.with_(seed=seed).outputs(_case(source, 64, 64))["out"] == 1).all()


def test_what_is_stored_over_an_mbarrier_is_told_at_its_next_use(sim: Sim) -> None:
    over = BULK.replace("    s[i % 2][t] *= 2;", "    s[i % 2][t] *= 2; if (i == 1) full[1] = t;")
    found = sim.fault(_case(over, block=64), Status.CRASH)
    assert "something else was stored over the mbarrier" in found.message
    assert found.line == line_of(over, "// wait")


def test_an_mbarrier_lies_in_shared_memory(sim: Sim) -> None:
    outside = BULK.replace("mbarrier_init(&full[0], 1)", "mbarrier_init((kopt::mbarrier_t*)out, 1)")
    found = sim.fault(_case(outside, block=64), Status.CRASH)
    assert "must lie in shared memory" in found.message
    assert found.line == line_of(outside, "mbarrier_t*)out")


def test_wide_accesses_ask_for_their_alignment(sim: Sim) -> None:
    source = (
        "#include <kopt/global_access.cuh>\n"
        + KERNEL
        + """(const float* in, float* out) {
      const int t = threadIdx.x;
      kopt::store_32(out + 8 * t + STORE, kopt::load_32(in + 8 * t + LOAD));
      kopt::store_streaming_16(out + 8 * t, kopt::load_streaming_16(in + 8 * t + 4)); }"""
    )
    aligned = source.replace("STORE", "0").replace("LOAD", "0")
    outcome = sim.execute(_case(aligned))
    expected = X.reshape(32, 2, 4)[:, [1, 1]].reshape(-1)
    np.testing.assert_array_equal(outcome.outputs["out"], expected)
    assert outcome.cpu_bodies == ("load_32", "store_32")
    for store, load in (("4", "0"), ("0", "4")):
        case = _case(source.replace("STORE", store).replace("LOAD", load), block=8)
        assert sim.fault(case, Status.MISALIGNED).line == 4


def test_dependent_launch_calls_are_named(sim: Sim) -> None:
    source = (
        "#include <kopt/griddepcontrol.cuh>\n"
        + KERNEL
        + """(const float* in, float* out) {
      kopt::griddepcontrol_wait(); out[threadIdx.x] = in[threadIdx.x];
      kopt::griddepcontrol_launch_dependents(); }"""
    )
    outcome = sim.execute(_case(source, 32))
    assert outcome.cpu_bodies == ("griddepcontrol_launch_dependents", "griddepcontrol_wait")
