"""Tiles of tensor maps (TMA) against a numpy model."""

import numpy as np
import pytest

from kopt.kernels.plan import Argument, Launch, TensorMap
from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase

X = np.arange(256, dtype=np.float32)
ROWS, COLUMNS = 24, 40
TILE = """#include <kopt/bulk_copy.cuh>
extern "C" __global__ void k(const __grid_constant__ CUtensorMap in_map,
                             const __grid_constant__ CUtensorMap back_map,
                             float* out, int x, int y, int size) {
  extern __shared__ __align__(1024) float tile[];
  __shared__ kopt::mbarrier_t full;
  if (threadIdx.x == 0) {
    kopt::mbarrier_init(&full, 1);
    kopt::mbarrier_arrive_expect_tx(&full, size * 4);
    kopt::tma_load_2d(tile, &in_map, &full, x, y);
  }
  __syncthreads();
  kopt::mbarrier_wait_parity(&full, 0);
  for (int i = threadIdx.x; i < size; i += 32) out[i] = tile[i];
  __syncthreads();
  if (threadIdx.x == 0) {
    kopt::tma_store_2d(&back_map, tile, x, y);
    kopt::bulk_commit_group();
    kopt::bulk_wait_group<0>();
  }
}"""


def _swizzled(tile: Array, swizzle: int) -> Array:
    """Exchange 16-byte chunks: bits 4.. of the byte offset with those from bit 7 on."""
    offsets = np.arange(tile.size) * 4
    bits = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    found = np.empty(tile.size, np.float32)
    found[(offsets ^ ((offsets >> 7 & bits) << 4)) // 4] = tile.reshape(-1)
    return found


@pytest.mark.parametrize(
    ("swizzle", "box", "start", "steps"),
    [
        ("none", (4, 8), (5, 3), (1, 1)),
        ("32", (16, 8), (0, 0), (1, 1)),
        ("64", (8, 16), (8, 8), (1, 1)),
        ("128", (8, 32), (8, 0), (1, 1)),
        ("128", (16, 32), (16, 24), (1, 1)),  # over the right and the lower edge
        ("none", (4, 8), (-2, -3), (1, 1)),  # over the left and the upper edge
        ("none", (8, 8), (4, 0), (3, 1)),  # every third row of eight: three rows
    ],
)
def test_tiles_of_a_tensor_map_equal_a_numpy_model(
    sim: Sim,
    swizzle: str,
    box: tuple[int, int],
    start: tuple[int, int],
    steps: tuple[int, int],
) -> None:
    source = np.arange(1, ROWS * COLUMNS + 1, dtype=np.float32).reshape(ROWS, COLUMNS)
    rows, columns = -(-box[0] // steps[0]), box[1]

    def describe(name: str, tensor: str) -> TensorMap:
        return TensorMap.model_validate(
            {"name": name, "tensor": tensor, "view": (ROWS, COLUMNS), "box": box}
            | {"element_strides": steps, "swizzle": swizzle}
        )

    numbers = tuple(
        Argument(kind="int32", name=name, value=value)
        for name, value in (("x", start[1]), ("y", start[0]), ("size", rows * columns))
    )
    maps = (describe("in_map", "in"), describe("back_map", "back"))
    arguments = (
        *(Argument(kind="tensor_map", name=m.name) for m in maps),
        Argument(kind="tensor", name="out"),
        *numbers,
    )
    case = SimCase(
        TILE,
        {"in": source},
        {"out": np.zeros(rows * columns, np.float32), "back": np.zeros_like(source)},
        inout=frozenset(("back",)),
        tensor_maps=maps,
        launches=(
            Launch(
                kernel="k",
                grid=(1, 1, 1),
                block=(32, 1, 1),
                dynamic_smem_bytes=rows * columns * 4,
                arguments=arguments,
            ),
        ),
    )
    outcome = sim.execute(case)
    assert outcome.status is Status.PASSED, outcome.diagnostics
    y = start[0] + steps[0] * np.arange(rows)[:, None] + np.zeros((1, columns), int)
    x = start[1] + np.arange(columns)[None, :] + np.zeros((rows, 1), int)
    inside = (y >= 0) & (y < ROWS) & (x >= 0) & (x < COLUMNS)
    tile = np.where(inside, source[y.clip(0, ROWS - 1), x.clip(0, COLUMNS - 1)], 0)
    expected = _swizzled(tile, int(swizzle.replace("none", "0")))
    np.testing.assert_array_equal(outcome.outputs["out"], expected)
    back = np.zeros_like(source)
    back[y[inside], x[inside]] = tile[inside]
    np.testing.assert_array_equal(outcome.outputs["back"], back)
    assert outcome.cpu_bodies == ("mbarrier", "tma_load", "tma_store")
    assert outcome.counters is not None
    assert set(outcome.counters.traffic) == {"in", "out", "back"}


def test_one_dimensional_tiles_and_what_no_simulator_map_has(sim: Sim) -> None:
    source = """#include <kopt/bulk_copy.cuh>
    extern "C" __global__ void k(const float* in, float* out,
                                 const __grid_constant__ CUtensorMap map) {
      __shared__ alignas(128) float tile[64];
      __shared__ kopt::mbarrier_t full;
      if (threadIdx.x == 0) {
        kopt::mbarrier_init(&full, 1);
        kopt::mbarrier_arrive_expect_tx(&full, 256);
        kopt::tma_load_1d(tile, &map, &full, 224);
      }
      __syncthreads();
      kopt::mbarrier_wait_parity(&full, 0);
      out[threadIdx.x] = tile[threadIdx.x];
    }"""
    plain = TensorMap(name="map", tensor="in", view=(256,), box=(64,), element_strides=(1,))
    case = SimCase(
        source, {"in": X}, {"out": np.zeros(64, np.float32)}, tensor_maps=(plain,), block=(64, 1, 1)
    )
    out = sim.outputs(case)["out"]
    np.testing.assert_array_equal(out, np.concatenate([X[224:], np.zeros(32)]))
    for unknown in ({"fill": "nan"}, {"interleave": "16"}):
        maps = (plain.model_copy(update=unknown),)
        refused = SimCase(source, case.inputs, case.outputs, tensor_maps=maps, block=(64, 1, 1))
        assert "neither exists on" in sim.fault(refused, Status.UNSUPPORTED_ON_SIM).message
