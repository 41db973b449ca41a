"""float2_math.cuh on the simulator: sums and products of two floats at once."""

import numpy as np

from support.sim_run import Sim, SimCase

A = np.array([0.1, 1 + 2**-12, -3.0, 2**60], dtype=np.float32)
B = np.array([0.2, 1 - 2**-12, 5.0, 2**60], dtype=np.float32)

SOURCE = """#include <kopt/float2_math.cuh>
extern "C" __global__ void k(const float2* a, const float2* b, float2* out) {
  const int t = threadIdx.x;
  const float2 minus_one = make_float2(-1.0f, -1.0f);
  out[3 * t] = kopt::add2(a[t], b[t]);
  out[3 * t + 1] = kopt::mul2(a[t], b[t]);
  out[3 * t + 2] = kopt::fma2(a[t], b[t], minus_one);
}"""


def test_both_floats_are_rounded_once(sim: Sim) -> None:
    case = SimCase(SOURCE, {"a": A, "b": B}, {"out": np.zeros(12, np.float32)}, block=(2, 1, 1))
    out = sim.outputs(case)["out"].reshape(2, 3, 2)
    exact = A.astype(np.float64) * B.astype(np.float64)
    np.testing.assert_array_equal(out[:, 0].reshape(-1), A + B)
    np.testing.assert_array_equal(out[:, 1].reshape(-1), A * B)
    np.testing.assert_array_equal(out[:, 2].reshape(-1), (exact - 1).astype(np.float32))
