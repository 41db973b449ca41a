"""Arithmetic and conversions that round in one direction, against exact fractions."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from support.quick_cases import first_quick
from support.sim_run import Sim, SimCase

KERNEL = 'extern "C" __global__ void k'
VALUES = [1.0, -3.0, 1e-10, 0.1, -1e10, 7.25, 3e-18, 16777217.0, -0.3333, 2.5e18]

Exact = Callable[[Fraction, Fraction], Fraction]
OPERATIONS: dict[str, Exact] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
}


def _directed(exact: Fraction, how: str, dtype: type[np.floating]) -> float:
    """Return the value of `dtype` beside `exact` that the rounding `how` asks for."""
    nearest = dtype(float(exact))
    while Fraction(float(nearest)) > exact:
        nearest = np.nextafter(nearest, dtype(-np.inf))
    while Fraction(float(np.nextafter(nearest, dtype(np.inf)))) <= exact:
        nearest = np.nextafter(nearest, dtype(np.inf))
    is_up = how == "ru" or (how == "rz" and exact < 0)
    if Fraction(float(nearest)) != exact and is_up:
        nearest = np.nextafter(nearest, dtype(np.inf))
    return float(nearest)


@pytest.mark.parametrize("how", ["rd", "ru", "rz"])
@pytest.mark.parametrize("prefix", first_quick(["f", "d"], 1))
def test_arithmetic_rounds_in_its_direction(sim: Sim, prefix: str, how: str) -> None:
    dtype = np.float32 if prefix == "f" else np.float64
    name, fma = ("float", "__fmaf") if prefix == "f" else ("double", "__fma")
    calls = [f"__{prefix}{operation}_{how}(a, b)" for operation in OPERATIONS]
    calls += [f"{fma}_{how}(a, b, b)", f"__{prefix}rcp_{how}(a)", f"__{prefix}sqrt_{how}(a * a)"]
    stores = "".join(f"out[{n} * 100 + i] = {call};\n" for n, call in enumerate(calls))
    source = (
        f"{KERNEL}(const {name}* in, {name}* out) {{ int i = threadIdx.x;"
        f" {name} a = in[i / 10], b = in[i % 10];\n{stores} }}"
    )
    values = np.array(VALUES, dtype)
    case = SimCase(
        source, {"in": values}, {"out": np.zeros((len(calls), 100), dtype)}, block=(100, 1, 1)
    )
    out = sim.outputs(case)["out"]
    for i in range(100):
        a, b = Fraction(float(values[i // 10])), Fraction(float(values[i % 10]))
        exact = [operation(a, b) for operation in OPERATIONS.values()] + [a * b + b, 1 / a]
        expected = [_directed(one, how, dtype) for one in exact]
        assert out[:6, i].tolist() == expected, (float(a), float(b))
        square = Fraction(float(values[i // 10] * values[i // 10]))
        low = _directed(Fraction(math.isqrt(int(square * 2**400)), 2**200), "rd", dtype)
        root = float(out[6, i])
        if how == "ru":
            assert Fraction(root) ** 2 >= square
            assert root == low or root == float(np.nextafter(dtype(low), dtype(np.inf)))
        else:
            assert root == low


def test_integers_and_doubles_become_floats_in_their_direction(sim: Sim) -> None:
    integers = [16777217, -16777217, 2**31 - 1, 3]
    wide = [2**63 - 1, -(2**62) - 1, 2**53 + 1, 7]
    doubles = [0.1, -0.1, 1e300, 1e-300]
    stores, expected = "", list[float]()
    for how in ("rd", "ru", "rz"):
        for n in integers:
            stores += f"*out++ = __int2float_{how}({n});\n"
            expected.append(_directed(Fraction(n), how, np.float32))
        for n in wide:
            stores += f"*out++ = __ll2float_{how}({n}ll); *out++ = __ll2double_{how}({n}ll);\n"
            expected.append(_directed(Fraction(n), how, np.float32))
            expected.append(_directed(Fraction(n), how, np.float64))
        for x in doubles[:2]:
            stores += f"*out++ = __double2float_{how}({x!r});\n"
            expected.append(_directed(Fraction(x), how, np.float32))
    most = float(np.finfo(np.float32).max)
    stores += "*out++ = __double2float_rd(1e300); *out++ = __double2float_ru(1e300);\n"
    stores += "*out++ = __fadd_rz(3e38f, 3e38f); *out++ = __fmul_rd(1e-30f, 1e-30f);\n"
    expected += [most, math.inf, most, 0.0]
    outputs = {"out": np.zeros(len(expected), np.float64)}
    case = SimCase(f"{KERNEL}(double* out) {{\n{stores} }}", {}, outputs, block=(1, 1, 1))
    assert sim.outputs(case)["out"].tolist() == expected
