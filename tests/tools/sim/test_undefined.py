"""What C++ leaves undefined and a GPU does in its own way: beyond local arrays, signed overflow."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Sim, SimCase

pytestmark = pytest.mark.slow  # a program for each

KERNEL = 'extern "C" __global__ void k'


def _case(body: str) -> SimCase:
    source = f"{KERNEL}(int* out) {{\n{body}\n}}"
    return SimCase(source, outputs={"out": np.zeros(8, np.int32)}, block=(1, 1, 1))


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ("int v[7]; for (int i = 0; i < 8; ++i) v[i] = out[i] = i; out[0] = v[out[1]];", "a local"),
        ("float4 v{}; float* at = &v.x; for (int i = 0; i < 8; ++i) out[i] = at[i];", "a local"),
        (
            "static const int t[] = {1, 2, 3}; for (int i = 0; i < 8; ++i) out[i] = t[i];",
            "constant",
        ),
    ],
)
def test_what_lies_beyond_an_array_of_known_size_is_out_of_bounds(
    sim: Sim, body: str, note: str
) -> None:
    found = sim.fault(_case(body), Status.OUT_OF_BOUNDS)
    assert note in found.message
    assert found.line == 2


@pytest.mark.parametrize(
    "expression", ["n + i", "-2 - n - i", "n * (i + 2)", "(-n - 1) / -(i + 1)", "-(-n - 1) + i"]
)
def test_signed_overflow_is_told_with_its_line(sim: Sim, expression: str) -> None:
    body = f"int n = out[0] = 2147483647; for (int i = 0; i < 8; ++i) out[i] = {expression};"
    found = sim.fault(_case(body), Status.CRASH)
    assert "signed integer overflow" in found.message
    assert found.line == 2


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("atomicAdd(&s, 5), s", -2147483644),
        ("atomicSub(&s, -5), s", -2147483644),
        ("__reduce_add_sync(1u, s)", 2147483647),
        ("__dp4a(0x01010101, 0x01010101, s)", -2147483645),
        ("__mul24(0x7fffff, 0x7fffff)", -16777215),
        ("(int)__sad(-s - 1, s, 0u)", -1),
        ("(int)(unsigned(s) * 2u)", -2),
    ],
)
def test_the_hardware_s_own_sums_and_unsigned_numbers_wrap(
    sim: Sim, expression: str, expected: int
) -> None:
    body = f"__shared__ int s; s = 2147483647; __syncthreads(); out[0] = ({expression});"
    body += " for (int i = 1; i < 8; ++i) out[i] = 0;"
    assert sim.outputs(_case(body))["out"][0] == expected


def test_arrays_within_an_array_and_flat_structs_are_left_alone(sim: Sim) -> None:
    body = """float v[2][4]; for (int i = 0; i < 8; ++i) v[0][i] = i;
    float4 w[2]; float* flat = &w[0].x; for (int i = 0; i < 8; ++i) flat[i] = v[0][i];
    for (int i = 0; i < 8; ++i) out[i] = (&w[0].x)[i];"""
    assert sim.outputs(_case(body))["out"].tolist() == list(range(8))
