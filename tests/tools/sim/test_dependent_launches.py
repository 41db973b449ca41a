"""Programmatic dependent launch: what may be touched before the wait for the launch before."""

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, Scratch
from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase, line_of

pytestmark = pytest.mark.slow  # a program for each

HEAD = """#include <kopt/griddepcontrol.cuh>
#include <kopt/cp_async.cuh>
#include <kopt/bulk_copy.cuh>
extern "C" __global__ void k(const float* weight, const float* x, float* out) {
  __shared__ alignas(128) float s[64];
  __shared__ alignas(8) kopt::mbarrier_t barrier;
  const int t = threadIdx.x;
"""
X = np.arange(64, dtype=np.float32)


def case(body: str, pdl: bool = True) -> SimCase:
    """Return a dependent launch of two warps with a static weight."""
    return SimCase(
        f"{HEAD}{body}\n}}",
        inputs={"weight": X, "x": X},
        outputs={"out": np.zeros(64, np.float32)},
        static=frozenset(("weight",)),
        block=(64, 1, 1),
        pdl=pdl,
    )


RIGHT = {
    "weights first": """const float w = weight[t]; kopt::griddepcontrol_wait();
      out[t] = w + x[t];""",
    "one thread waits for its block": """if (t == 40) kopt::griddepcontrol_wait();
      __syncthreads(); out[t] = weight[t] + x[t];""",
    "one lane waits for its warp": """if (t % 32 == 3) kopt::griddepcontrol_wait();
      __syncwarp(); out[t] = weight[t] + x[t];""",
    "CUDA's own name": "cudaGridDependencySynchronize(); out[t] = weight[t] + x[t];",
    "the thread that copies waits": """if (t == 0) { kopt::mbarrier_init(&barrier, 1); }
      __syncthreads();
      if (t == 0) {
        kopt::griddepcontrol_wait();
        kopt::mbarrier_arrive_expect_tx(&barrier, 256);
        kopt::bulk_load(s, x, 256, &barrier);
      }
      const float w = weight[t];
      kopt::mbarrier_wait_parity(&barrier, 0);
      out[t] = w + s[t];""",
}


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_what_comes_after_the_wait_may_touch_everything(sim: Sim, body: str, seed: int) -> None:
    np.testing.assert_array_equal(sim.with_(seed=seed).outputs(case(body))["out"], 2 * X)


WRONG = {
    "a load": ("out[t] = weight[t]; float v = x[t];  // here", "store", "out"),
    "an input": (
        "const float v = x[t];  // here\nkopt::griddepcontrol_wait(); out[t] = v;",
        "",
        "x",
    ),
    "a store": ("out[t] = 1.0f;  // here\nkopt::griddepcontrol_wait();", "store", "out"),
    "a value that nobody uses": (
        "*(volatile float*)&s[t] = x[t];  // here\nkopt::griddepcontrol_wait(); out[t] = x[t];",
        "load",
        "x",
    ),
    "an asynchronous copy": (
        """kopt::cp_async<4>(&s[t], x + t);  // here
        kopt::cp_async_commit_group(); kopt::griddepcontrol_wait();
        kopt::cp_async_wait_group<0>(); out[t] = s[t];""",
        "load",
        "x",
    ),
    "another warp's wait": (
        """if (t < 32) kopt::griddepcontrol_wait();
        out[t] = x[t];  // here""",
        "load",
        "x",
    ),
}


@pytest.mark.parametrize(("body", "kind", "name"), WRONG.values(), ids=WRONG)
def test_what_comes_before_the_wait_is_a_race_with_the_launch_before(
    sim: Sim, body: str, kind: str, name: str
) -> None:
    wrong = case(body)
    found = sim.fault(wrong, Status.DATA_RACE)
    assert f"{kind} of `{name}`" in found.message
    assert "griddepcontrol_wait() must come first" in found.message
    assert found.line == line_of(wrong.source, "// here")
    assert found.hint is not None and "static" in found.hint


def test_a_launch_that_waits_by_itself_may_touch_everything(sim: Sim) -> None:
    assert sim.execute(case("out[t] = x[t];", pdl=False)).status is Status.PASSED


@pytest.mark.parametrize("waits", [True, False])
def test_scratch_of_an_earlier_launch_is_read_after_the_wait(sim: Sim, waits: bool) -> None:
    source = f"""#include <kopt/griddepcontrol.cuh>
extern "C" __global__ void fill(float* part) {{ part[threadIdx.x] = 3.0f; }}
extern "C" __global__ void finish(const float* part, float* out) {{
  {"kopt::griddepcontrol_wait();" if waits else ""}
  out[threadIdx.x] = part[threadIdx.x];
}}"""
    part = Argument(kind="scratch", name="part")
    first = Launch(kernel="fill", grid=(1, 1, 1), block=(32, 1, 1), arguments=(part,))
    second = Launch(
        kernel="finish",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        pdl=True,
        arguments=(part, Argument(kind="tensor", name="out")),
    )
    two = SimCase(
        source,
        outputs={"out": np.zeros(32, np.float32)},
        scratch=(Scratch(name="part", dtype="float32", shape=(32,)),),
        launches=(first, second),
    )
    assert sim.execute(two).status is (Status.PASSED if waits else Status.DATA_RACE)
