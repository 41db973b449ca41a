"""Shuffles, votes, matches and reductions among the lanes of a warp."""

from collections.abc import Callable

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import POISON, Array, Sim, SimCase

pytestmark = pytest.mark.slow  # a program for each
KERNEL = 'extern "C" __global__ void k'
LANES = np.arange(32)


def _run(sim: Sim, body: str, rows: int = 1, block: int = 32) -> Array:
    outputs = {"out": np.zeros((rows, block), np.int32)}
    source = f"{KERNEL}(int* out) {{ int lane = threadIdx.x % 32;\n{body}\n}}"
    return sim.outputs(SimCase(source, outputs=outputs, block=(block, 1, 1)))["out"]


def _model(width: int, source: Callable[[int], int]) -> list[int]:
    """Lane values 100 + lane, read from `source(lane)` if that is in reach, else one's own."""
    return [100 + source(lane) for lane in range(32)]


@pytest.mark.parametrize("width", [32, 16, 8, 4, 2])
def test_shuffles_stay_within_their_segment(sim: Sim, width: int) -> None:
    def base(lane: int) -> int:
        return lane // width * width

    out = _run(
        sim,
        f"""int v = 100 + lane; const unsigned all = 0xffffffffu;
        out[lane] = __shfl_sync(all, v, lane * 3 + 1, {width});
        out[32 + lane] = __shfl_up_sync(all, v, 3, {width});
        out[64 + lane] = __shfl_down_sync(all, v, 3, {width});
        out[96 + lane] = __shfl_xor_sync(all, v, 5, {width});""",
        rows=4,
    )
    assert out[0].tolist() == _model(width, lambda n: base(n) + (n * 3 + 1) % width)
    assert out[1].tolist() == _model(width, lambda n: n - 3 if n % width >= 3 else n)
    assert out[2].tolist() == _model(width, lambda n: n + 3 if n % width + 3 < width else n)
    # Lanes of later segments are out of reach, those of earlier ones are not.
    assert out[3].tolist() == _model(
        width, lambda n: n ^ 5 if (n ^ 5) // width <= n // width else n
    )


def test_lanes_may_have_made_different_numbers_of_exchanges(sim: Sim) -> None:
    for seed in range(4):
        out = _run(
            sim.with_(seed=seed),
            """int v = lane;
            if (lane < 16) v = __shfl_xor_sync(0xffffu, v, 1);
            if (lane % 2) { for (int n = 0; n < lane; ++n) v += __shfl_xor_sync(1u << lane, 1, 0); }
            if (lane < 2) for (int n = 0; n < 9; ++n) __ballot_sync(3u, n);
            out[lane] = __shfl_sync(0xffffffffu, lane * 10, 31 - lane);""",
        )
        assert out[0].tolist() == [310 - 10 * lane for lane in range(32)]


def test_shuffles_move_eight_bytes_and_narrow_types(sim: Sim) -> None:
    out = _run(
        sim,
        """double d = __shfl_down_sync(~0u, 1.5 * lane, 1);
        long long w = __shfl_xor_sync(~0u, (long long)lane << 40, 1);
        __nv_bfloat16 h = __shfl_up_sync(~0u, __float2bfloat16((float)lane), 1);
        out[lane] = (int)(d * 2); out[32 + lane] = (int)(w >> 40);
        out[64 + lane] = (int)__bfloat162float(h);""",
        rows=3,
    )
    assert out[0, :31].tolist() == [3 * (lane + 1) for lane in range(31)]
    assert out[1].tolist() == (LANES ^ 1).tolist()
    assert out[2, 1:].tolist() == list(range(31))


def test_votes_and_matches_cover_the_mask_only(sim: Sim) -> None:
    out = _run(
        sim,
        """const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
        out[lane] = __ballot_sync(half, lane % 3 == 0);
        out[32 + lane] = __any_sync(half, lane == 20);
        out[64 + lane] = __all_sync(half, lane >= 16);
        out[96 + lane] = __match_any_sync(half, lane % 4);
        out[128 + lane] = __activemask();""",
        rows=5,
    )
    thirds = sum(1 << lane for lane in range(0, 32, 3))
    assert out[0].view(np.uint32).tolist() == [thirds & 0xFFFF] * 16 + [thirds & 0xFFFF0000] * 16
    assert out[1].tolist() == [0] * 16 + [1] * 16
    assert out[2].tolist() == [0] * 16 + [1] * 16
    fours = [0x1111 << lane % 4 for lane in range(16)]
    assert out[3].view(np.uint32).tolist() == fours + [four << 16 for four in fours]
    assert out[4].view(np.uint32).tolist() == [0xFFFFFFFF] * 32


def test_reductions_of_integers(sim: Sim) -> None:
    out = _run(
        sim,
        """const unsigned all = ~0u, u = (unsigned)lane;
        out[lane] = __reduce_add_sync(all, lane); out[32 + lane] = __reduce_min_sync(all, -lane);
        out[64 + lane] = __reduce_max_sync(all, u); out[96 + lane] = __reduce_and_sync(all, u | 8u);
        out[128 + lane] = __reduce_or_sync(all, u);
        out[160 + lane] = __reduce_xor_sync(all, 1u << lane);
        """,
        rows=6,
    )
    expected = [496, -31, 31, 8, 31, -1]
    assert out.tolist() == [[value] * 32 for value in expected]


def test_exited_lanes_are_not_waited_for(sim: Sim) -> None:
    out = _run(
        sim,
        """if (lane < 4 || lane >= 24) { out[threadIdx.x] = -1; return; }
        int sum = lane;
        for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, lane, d) % 2;
        __syncwarp();
        out[threadIdx.x] = __popc(__ballot_sync(~0u, sum != -1));""",
        block=64,
    )
    assert out[0].tolist() == ([-1] * 4 + [20] * 20 + [-1] * 8) * 2


def test_a_lane_that_took_no_part_gives_poison(sim: Sim) -> None:
    out = _run(sim, "if (lane == 31) return; out[lane] = __shfl_sync(~0u, lane, 31);")
    assert out[0, :31].tolist() == [0x7FBADBAD] * 31
    assert out[0, 31] == np.frombuffer(bytes([POISON] * 4), np.int32)[0]  # nobody wrote it


def test_partial_warps_and_several_warps_keep_to_themselves(sim: Sim) -> None:
    body = "out[threadIdx.x] = __shfl_sync(~0u, (int)threadIdx.x, 0) + __popc(__activemask());"
    out = _run(sim, body, block=80)
    assert out[0].tolist() == [32] * 32 + [64] * 32 + [80] * 16


def test_warp_syncs_may_be_many(sim: Sim) -> None:
    out = _run(
        sim,
        """__shared__ int s[32]; int sum = 0;
        for (int n = 0; n < 9000; ++n) {
          s[lane] = n; __syncwarp(); sum += s[(lane + 1) % 32] - n; __syncwarp();
        }
        out[lane] = sum;""",
    )
    assert not out.any()


def test_a_warp_sync_orders_also_when_an_exit_completes_it(sim: Sim) -> None:
    body = """__shared__ int s[32]; s[lane] = lane;
    if (lane >= 16) return;
    __syncwarp(); out[lane] = s[lane ^ 1];"""
    assert _run(sim, body)[0, :16].tolist() == (LANES[:16] ^ 1).tolist()


def test_shuffles_do_not_order_memory_but_a_warp_sync_does(sim: Sim) -> None:
    body = """{ __shared__ int s[32]; s[threadIdx.x] = threadIdx.x;
    %s;
    out[threadIdx.x] = s[threadIdx.x ^ 1]; }"""
    outputs = {"out": np.zeros(32, np.int32)}
    for text, status in (
        ("__syncwarp()", Status.PASSED),
        ("__shfl_sync(~0u, 1, 0)", Status.DATA_RACE),
        ("__syncwarp(threadIdx.x < 16 ? 0xffffu : 0xffff0000u)", Status.PASSED),
        ("__syncwarp(1u << threadIdx.x)", Status.DATA_RACE),
    ):
        case = SimCase(f"{KERNEL}(int* out) {body % text}", outputs=outputs)
        assert sim.execute(case).status is status, text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "if (lane < 16)\n __shfl_sync(~0u, 1, 0);\n else __syncthreads();",
            "a warp shuffle or vote",
        ),
        ("if (lane < 16)\n __ballot_sync(0xff00u, 1);", "the calling lane 0 is not in the mask"),
        (
            "if (lane == 3)\n __syncwarp(0xffu); else if (lane < 3)\n __syncwarp(0xfu);",
            "a warp sync",
        ),
    ],
)
def test_lanes_that_never_meet_are_named(sim: Sim, body: str, words: str) -> None:
    source = f"{KERNEL}(int* out) {{ int lane = threadIdx.x; out[lane] = 1;\n{body}\n}}"
    case = SimCase(source, outputs={"out": np.zeros(32, np.int32)})
    found = sim.fault(case, Status.BARRIER_DIVERGENCE)
    assert words in found.message
    assert found.line in (3, 4)


def test_the_active_mask_holds_the_lanes_of_the_same_branch(sim: Sim) -> None:
    for seed in range(3):
        out = _run(
            sim.with_(seed=seed),
            """if (lane % 4 == 1) {
              const unsigned mask = __activemask();
              out[lane] = mask; out[32 + lane] = __shfl_sync(mask, lane, 5);
            } else {
              out[lane] = __activemask(); out[32 + lane] = 0;
            }
            __syncthreads();""",
            rows=2,
        )
        ones = 0x22222222
        expected = [ones if lane % 4 == 1 else ~ones & 0xFFFFFFFF for lane in range(32)]
        assert out[0].view(np.uint32).tolist() == expected
        assert out[1].tolist() == [5 if lane % 4 == 1 else 0 for lane in range(32)]
