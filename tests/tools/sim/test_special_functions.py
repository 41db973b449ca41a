"""Functions of CUDA's library that C++ lacks, against references in float64 or exact values."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from kopt.kernels.status import Status
from support.sim_run import Array, Sim, SimCase

KERNEL = 'extern "C" __global__ void k'
X = np.linspace(0.02, 0.97, 32)


def _inverse(
    function: Callable[[float], float], low: float, high: float
) -> Callable[[Array], Array]:
    """Return the inverse of a rising `function` between `low` and `high`, by halving."""

    def one(y: float) -> float:
        a, b = low, high
        for _ in range(200):
            middle = (a + b) / 2
            a, b = (middle, b) if function(middle) < y else (a, middle)
        return a

    return np.vectorize(one)


def _bessel(order: int) -> Callable[[Array], Array]:
    """Return the integral of exp(x cos t) cos(order t) over a half turn, divided by pi."""
    angles = (np.arange(400) + 0.5) * math.pi / 400

    def one(x: float) -> float:
        return float(np.mean(np.exp(x * np.cos(angles)) * np.cos(order * angles)))

    return np.vectorize(one)


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def _scaled_erfc(x: float) -> float:
    return math.exp(x * x) * math.erfc(x)


REFERENCES: dict[str, Callable[[Array], Array]] = {
    "erfinv": _inverse(math.erf, -6, 6),
    "normcdf": np.vectorize(_normal),
    "normcdfinv": _inverse(_normal, -9, 9),
    "erfcx": np.vectorize(_scaled_erfc),
    "cyl_bessel_i0": _bessel(0),
    "cyl_bessel_i1": _bessel(1),
    "rcbrt": lambda x: x ** (-1 / 3),
    "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x),
}
REFERENCES["erfcinv"] = lambda y: -REFERENCES["normcdfinv"](y / 2) / math.sqrt(2)


@pytest.mark.slow  # programs with every function
@pytest.mark.parametrize("suffix", ["", "f"])
def test_library_functions_agree_with_their_definitions(sim: Sim, suffix: str) -> None:
    dtype, name = (np.float32, "float") if suffix else (np.float64, "double")
    calls = [f"{function}{suffix}(x)" for function in REFERENCES]
    stores = "".join(f"out[{n} * 32 + threadIdx.x] = {call};\n" for n, call in enumerate(calls))
    source = f"{KERNEL}(const {name}* in, {name}* out) {{ {name} x = in[threadIdx.x];\n{stores} }}"
    x = X.astype(dtype)
    case = SimCase(source, {"in": x}, {"out": np.zeros((len(calls), 32), dtype)})
    out = sim.outputs(case)["out"]
    for row, (text, reference) in enumerate(REFERENCES.items()):
        expected = reference(x.astype(np.float64))
        tolerance = 3e-7 if suffix else 1e-12
        np.testing.assert_allclose(
            out[row], expected, rtol=tolerance, atol=tolerance / 10, err_msg=text
        )


EXACT = {
    "norm3df(2.0f, 3.0f, 6.0f)": 7.0,
    "rnorm3d(1.0, 2.0, 2.0) * 3": 1.0,
    "norm4d(1.0, 1.0, 1.0, 1.0)": 2.0,
    "rnorm4df(2.0f, 2.0f, 2.0f, 2.0f)": 0.25,
    "normf(2, floats)": 5.0,
    "rhypotf(3.0f, 4.0f) * 5": 1.0,
    "sinpi(1e9 + 0.5)": 1.0,
    "sinpif(1e9f)": 0.0,
    "cospif(2.5f)": 0.0,
    "cospi(1.0)": -1.0,
    "erfinv(1.0) == CUDART_INF": 1.0,
    "erfcx(50.0) > 0.01128 && erfcx(50.0) < 0.01129": 1.0,
    "isnan(CUDART_NAN_F) && isinf(-CUDART_INF) && !isfinite(CUDART_INF_F)": 1.0,
    "signbit(-0.0f) && !signbit(1.0)": 1.0,
    "__hiloint2double(0x40080000, 0)": 3.0,
    "__double2hiint(-3.0) == (int)0xc0080000 && __double2loint(0.1) == (int)0x9999999a": 1.0,
    "__double2int_rn(2.5) + __double2int_ru(2.1) + __double2int_rd(-2.1)": 2.0,
    "__double2int_rz(CUDART_NAN)": -(2.0**31),
    "__double2ull_rz(1e30) == ~0ull": 1.0,
    "__umul64hi(1ull << 63, 6ull)": 3.0,
    "__mul64hi(-1ll, 5ll)": -1.0,
    "__brevll(1ull) == 1ull << 63": 1.0,
    "__fns(0xf0u, 0, 2)": 5.0,
    "__fns(0xf0u, 31, -1)": 7.0,
    "__funnelshift_rc(1u, 2u, 40u)": 2.0,
    "__usad(1u, 4u, 1u)": 4.0,
    "__hadd(-3, 0) + __rhadd(-3, 0) + __uhadd(3u, 4u) + __urhadd(3u, 4u)": 4.0,
    "__dp2a_lo((int)0x00020003, (int)0x0506fe04, 1)": 2 * -2 + 3 * 4 + 1,
    "__dp2a_hi(0x00020003u, 0x0506fe04u, 1u)": 2 * 5 + 3 * 6 + 1,
    "(float)__hfma_relu(half(-2.0f), half(3.0f), half(1.0f))": 0.0,
    "(float)__hfma_sat(bf16(2.0f), bf16(3.0f), bf16(1.0f))": 1.0,
    "__bfloat162int_rd(bf16(-2.5f)) + __bfloat162uint_ru(bf16(2.5f))": 0.0,
    "__bfloat162short_rn(bf16(1e6f))": 32767.0,
    "(float)__int2bfloat16_ru(257)": 258.0,
    "(float)__ull2bfloat16_rz(511ull)": 510.0,
    "llmax(1ll, -2ll) + (double)umin(4u, 9u)": 5.0,
}


@pytest.mark.slow  # one program with every conversion
def test_conversions_and_norms_are_exact(sim: Sim) -> None:
    stores = "".join(f"out[{n}] = (double)({text});\n" for n, text in enumerate(EXACT))
    source = (
        "#include <math_constants.h>\nusing half = __half; using bf16 = __nv_bfloat16;\n"
        f"{KERNEL}(double* out) {{ const float floats[2] = {{3.0f, 4.0f}};\n{stores} }}"
    )
    outputs = {"out": np.zeros(len(EXACT), np.float64)}
    out = sim.outputs(SimCase(source, {}, outputs, block=(1, 1, 1)))["out"]
    wrong = {
        text: got
        for (text, value), got in zip(EXACT.items(), out.tolist(), strict=True)
        if not math.isclose(got, value, rel_tol=1e-7, abs_tol=0)
    }
    assert wrong == {}


def test_fused_products_of_complex_numbers_take_both_parts(sim: Sim) -> None:
    source = (
        f"{KERNEL}(float* out) {{ __half2 r = __hcmadd(__floats2half2_rn(1, 2),"
        " __floats2half2_rn(3, 4), __floats2half2_rn(10, 20));"
        " out[0] = __low2float(r); out[1] = __high2float(r); }"
    )
    case = SimCase(source, {}, {"out": np.zeros(2, np.float32)}, block=(1, 1, 1))
    assert sim.outputs(case)["out"].tolist() == [3 - 8 + 10, 4 + 6 + 20]


def test_all_lanes_agree_or_none_match(sim: Sim) -> None:
    source = (
        f"{KERNEL}(unsigned* out) {{ int same, other;"
        " unsigned all = __match_all_sync(~0u, 7, &same);"
        " unsigned none = __match_all_sync(~0u, threadIdx.x, &other);"
        " out[threadIdx.x] = all == ~0u && same == 1 && none == 0 && other == 0; }"
    )
    out = sim.outputs(SimCase(source, {}, {"out": np.zeros(32, np.uint32)}))["out"]
    assert out.tolist() == [1] * 32


def test_atomics_of_vectors_add_each_element(sim: Sim) -> None:
    source = (
        f"{KERNEL}(float* out) {{ __shared__ float4 sum; __shared__ int lock;"
        " if (threadIdx.x == 0) { sum = make_float4(0, 0, 0, 0); lock = 0; } __syncthreads();"
        " atomicAdd(&sum, make_float4(1, 2, 3, 4)); atomicCAS_block(&lock, 0, 5); __syncthreads();"
        " if (threadIdx.x == 0) { out[0] = sum.x; out[1] = sum.w; out[2] = lock; } }"
    )
    case = SimCase(source, {}, {"out": np.zeros(3, np.float32)})
    assert sim.outputs(case)["out"].tolist() == [32, 128, 5]


def test_a_broken_assumption_is_a_crash(sim: Sim) -> None:
    source = f"{KERNEL}(float* out) {{ __builtin_assume(threadIdx.x < 31); out[threadIdx.x] = 1; }}"
    sim.fault(SimCase(source, {}, {"out": np.zeros(32, np.float32)}), Status.CRASH)


def test_shared_addresses_survive_32_bits(sim: Sim) -> None:
    source = (
        f"{KERNEL}(float* out) {{ extern __shared__ float values[][4]; values[threadIdx.x][1] = 2;"
        " unsigned at = (unsigned)__cvta_generic_to_shared(&values[threadIdx.x][1]);"
        " out[threadIdx.x] = *static_cast<float*>(__cvta_shared_to_generic(at)); }"
    )
    case = SimCase(source, {}, {"out": np.zeros(32, np.float32)}, smem=512)
    assert sim.outputs(case)["out"].tolist() == [2] * 32
