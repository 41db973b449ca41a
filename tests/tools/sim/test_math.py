"""Floating-point functions against exact or float64 values."""

from collections.abc import Callable
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from kopt.kernels.rounding import round_to_bf16, round_to_e2m1, round_to_e4m3
from kopt.tools.sim.toolset import cpu_fuses
from support.sim_run import Array, Sim, SimCase

KERNEL = 'extern "C" __global__ void k'

# Expression over float x; what numpy computes in float64.
APPROXIMATIONS: dict[str, Callable[[Array], Array]] = {
    "__expf(x)": np.exp,
    "expf(x)": np.exp,
    "__exp10f(x)": lambda x: 10.0**x,
    "exp10f(x)": lambda x: 10.0**x,
    "exp2f(x)": np.exp2,
    "__logf(x)": np.log,
    "__log2f(x)": np.log2,
    "__log10f(x)": np.log10,
    "rsqrtf(x)": lambda x: 1 / np.sqrt(x),
    "__frsqrt_rn(x)": lambda x: 1 / np.sqrt(x),
    "__fsqrt_rn(x)": np.sqrt,
    "rcbrtf(x)": lambda x: 1 / np.cbrt(x),
    "__frcp_rn(x)": lambda x: 1 / x,
    "__fdividef(3.0f, x)": lambda x: 3 / x,
    "__fdiv_rn(3.0f, x)": lambda x: 3 / x,
    "__powf(x, 1.5f)": lambda x: x**1.5,
    "__sinf(x)": np.sin,
    "__cosf(x)": np.cos,
    "__tanf(x)": np.tan,
    "tanhf(x)": np.tanh,
    "sinpif(x)": lambda x: np.sin(np.pi * x),
    "cospif(x)": lambda x: np.cos(np.pi * x),
    "__saturatef(x)": lambda x: np.clip(x, 0, 1),
    "__fmaf_rn(x, x, -1.0f)": lambda x: x * x - 1,
    "abs(-x)": np.abs,
    "min(x, 1)": lambda x: np.minimum(x, 1),
    "max(0.5, x)": lambda x: np.maximum(x, 0.5),
    "fminf(x, CUDART_NAN_F)": lambda x: x,
}


def test_approximations_agree_with_float64(sim: Sim) -> None:
    x = np.linspace(0.03, 3.9, 32, dtype=np.float32)
    stores = "\n".join(
        f"out[{row} * 32 + threadIdx.x] = {text};" for row, text in enumerate(APPROXIMATIONS)
    )
    case = SimCase(
        f"#include <math_constants.h>\n{KERNEL}(const float* in, float* out) {{\n"
        f"float x = in[threadIdx.x];\n{stores}\n}}",
        {"in": x},
        {"out": np.zeros((len(APPROXIMATIONS), 32), np.float32)},
    )
    out = sim.outputs(case)["out"]
    for row, (text, function) in enumerate(APPROXIMATIONS.items()):
        expected = function(x.astype(np.float64))
        np.testing.assert_allclose(out[row], expected, rtol=2e-6, atol=2e-6, err_msg=text)


@pytest.mark.skipif(not cpu_fuses(), reason="this CPU has no fused multiply-add")
def test_products_and_sums_are_contracted_as_nvcc_does(sim: Sim) -> None:
    # (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 with a fused product, 0 with a rounded one.
    source = (
        KERNEL + "(const float* in, float* out) { float x = in[0];"
        " out[0] = x * x - in[1]; out[1] = __fmaf_rn(x, x, -in[1]);"
        " float y = in[2]; out[2] = __fadd_rn(__fmul_rn(y, y), -in[1]); }"
    )
    values = np.array([1 + 2**-12, 1 + 2**-11, 1 + 2**-12], np.float32)
    case = SimCase(source, {"in": values}, {"out": np.zeros(3, np.float32)}, block=(1, 1, 1))
    assert sim.outputs(case)["out"].tolist() == [2**-24, 2**-24, 0]


def test_bfloat16_fma_rounds_once(sim: Sim) -> None:
    rng = np.random.default_rng(3)
    a, b, c = (
        round_to_bf16(rng.standard_normal(4096) * 2.0 ** rng.integers(-40, 40, 4096))
        for _ in range(3)
    )
    # A product that ties and an addend too small for float64 beside it decides the tie.
    a[:4], b[:4] = 1.5, 1 + 2**-7
    c[:4] = np.array([2**-100, -(2**-100), 0, 2**-60], ml_dtypes.bfloat16)
    source = (
        KERNEL + "(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c,"
        " __nv_bfloat16* out) { int i = blockIdx.x * 64 + 2 * threadIdx.x;"
        " __nv_bfloat162 r = __hfma2(__nv_bfloat162(a[i], a[i + 1]),"
        " __nv_bfloat162(b[i], b[i + 1]), __nv_bfloat162(c[i], c[i + 1]));"
        " out[i] = r.x; out[i + 1] = r.y; }"
    )
    outputs = {"out": np.zeros(4096, ml_dtypes.bfloat16)}
    case = SimCase(source, {"a": a, "b": b, "c": c}, outputs, grid=(64, 1, 1))
    out = sim.outputs(case)["out"].astype(np.float64)
    exact = a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)
    # Round-to-odd into float64 keeps every bit that decides: done here with Python's integers.
    expected = round_to_bf16(np.array([_to_odd(x, y, z) for x, y, z in zip(a, b, c, strict=True)]))
    np.testing.assert_array_equal(out, expected.astype(np.float64))
    assert out[0] > out[1]  # the tiny addend decides
    assert np.all(np.abs(out[4:] - exact[4:]) <= np.abs(exact[4:]) * 2.0**-8)


def _to_odd(a: float, b: float, c: float) -> float:
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    nearest = float(exact)
    if Fraction(nearest) == exact or int(np.float64(nearest).view(np.int64)) & 1:
        return nearest
    return float(np.nextafter(nearest, np.inf if exact > Fraction(nearest) else -np.inf))


@pytest.mark.slow  # a program for each
@pytest.mark.parametrize(("dtype", "name"), [("bfloat16", "__nv_bfloat16"), ("float16", "__half")])
def test_unary_narrow_functions_round_the_float_result(sim: Sim, dtype: str, name: str) -> None:
    functions: dict[str, Callable[[Array], Array]] = {
        "hexp": np.exp,
        "hexp2": np.exp2,
        "hlog": np.log,
        "hlog2": np.log2,
        "hsqrt": np.sqrt,
        "hrsqrt": lambda x: 1 / np.sqrt(x),
        "hrcp": lambda x: 1 / x,
        "hsin": np.sin,
        "hcos": np.cos,
        "htanh": np.tanh,
        "hceil": np.ceil,
        "hfloor": np.floor,
        "hrint": np.rint,
        "htrunc": np.trunc,
    }
    storage = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16)
    x = np.linspace(0.1, 5.7, 32).astype(storage)
    stores = "".join(
        f"out[{row} * 32 + threadIdx.x] = {text}(x);\n" for row, text in enumerate(functions)
    )
    source = f"{KERNEL}(const {name}* in, {name}* out) {{ {name} x = in[threadIdx.x];\n{stores} }}"
    case = SimCase(source, {"in": x}, {"out": np.zeros((len(functions), 32), storage)})
    out = sim.outputs(case)["out"]
    for row, (text, function) in enumerate(functions.items()):
        expected = function(x.astype(np.float64)).astype(np.float32).astype(storage)
        differ = out[row].view(np.int16).astype(int) - expected.view(np.int16).astype(int)
        assert np.max(np.abs(differ)) <= 1, text  # one last place, where float32 itself is a tie


@pytest.mark.slow  # a program of its own
def test_fp8_and_fp4_conversions_of_cudas_headers_run(sim: Sim) -> None:
    source = (
        KERNEL + "(const float* in, unsigned char* out) { float x = in[threadIdx.x];"
        " out[threadIdx.x] = __nv_fp8_e4m3(x).__x;"
        " out[32 + threadIdx.x] = __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }"
    )
    x = np.linspace(-7, 500, 32, dtype=np.float32)
    out = sim.outputs(SimCase(source, {"in": x}, {"out": np.zeros(64, np.uint8)}))["out"]
    e4m3 = round_to_e4m3(x.astype(np.float64)).view(np.uint8)
    np.testing.assert_array_equal(out[:32], e4m3)
    np.testing.assert_array_equal(out[32:], round_to_e2m1(x.astype(np.float64)))
