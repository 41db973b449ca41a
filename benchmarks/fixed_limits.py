"""Print what max abs < 1e-2 and max rel < 1e-3 say of honest and of coarse 4-bit outputs.

One input of add_rmsnorm_fp4quant (64x2048, normal values): the correctly rounded output, honest
orders of rounding, and outputs that no one should ship, each with the two numbers on dequantised
values, the error relative to the correctly rounded output's, and the gates' answer.

    .venv/bin/python benchmarks/fixed_limits.py
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from calibrate_gates import case_data, draw_inputs, small_workload
from honest_orders import Arrays, Order, emulations

from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import (
    decode,
    decode_e2m1,
    pack_e2m1,
    round_to_e2m1,
    round_to_e4m3,
    unpack_e2m1,
)
from kopt.tools.check.accuracy import measure_accuracy
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judge import judge

_PROBLEM = "add_rmsnorm_fp4quant"
_ROWS = 64


def main() -> None:
    """Print one line per output."""
    problem = load_problems()[_PROBLEM]
    inputs = draw_inputs(problem, small_workload(problem, _ROWS), "normal", 1)
    data = case_data(problem, inputs)
    exact = data.references["out"].exact.reshape(_ROWS, -1).astype(np.float64)
    emulation = dict(emulations())[_PROBLEM]
    scalars: Arrays = {"eps": np.array(1e-6, dtype=np.float32)}
    rng = np.random.default_rng(1)
    orders = (Order(), Order(True, True, True))
    honest = [(order.name, emulation.run({**inputs, **scalars}, order, rng)) for order in orders]
    residual = honest[0][1]["residual"]
    least = _relative_l2(_quantized(exact, _scales(exact)), exact)
    print("| output | bytes off | max abs | max rel | rel L2 / correct | gates |")
    for name, outputs in [*honest, *_coarse(exact)]:
        given = {**outputs, "residual": residual}
        numbers, answer = _describe(data, given)
        print(f"| {name} | {numbers} | {_relative_l2(given, exact) / least:.4f} | {answer} |")


def _coarse(exact: npt.NDArray[np.float64]) -> Iterator[tuple[str, Arrays]]:
    """Yield outputs that lose accuracy or are wrong in places."""
    scales = _scales(exact)
    right = _quantized(exact, scales)
    quotient = np.abs(exact) / np.repeat(decode(scales), 16, axis=1)
    below = (quotient[..., None] >= np.array([0.5, 1, 1.5, 2, 3, 4, 6])).sum(axis=-1)
    sign = np.signbit(exact).astype(np.uint8) << np.uint8(3)
    yield "truncated codes", {**right, "out": pack_e2m1(below.astype(np.uint8) | sign)}
    pairs = np.abs(exact).reshape(_ROWS, -1, 32).max(axis=2) / 6
    yield "one scale per 32", _quantized(exact, round_to_e4m3(np.repeat(pairs, 2, axis=1)))
    swapped = right["out"].copy()
    swapped[0] = (swapped[0] >> 4) | (swapped[0] << 4)
    yield "nibbles of one row swapped", {**right, "out": swapped}


def _scales(exact: npt.NDArray[np.float64]) -> npt.NDArray[np.generic]:
    return round_to_e4m3(np.abs(exact).reshape(_ROWS, -1, 16).max(axis=2) / 6)


def _quantized(exact: npt.NDArray[np.float64], scales: npt.NDArray[np.generic]) -> Arrays:
    codes = round_to_e2m1(exact / np.repeat(decode(scales), 16, axis=1))
    return {"out": pack_e2m1(codes), "block_scale": scales}


def _relative_l2(outputs: Arrays, exact: npt.NDArray[np.float64]) -> float:
    values = decode_e2m1(unpack_e2m1(outputs["out"]))
    values *= np.repeat(decode(outputs["block_scale"]), 16, axis=1)
    return float(np.linalg.norm(values - exact) / np.linalg.norm(exact))


def _describe(data: CaseData, outputs: Arrays) -> tuple[str, str]:
    """Return max abs and max rel, and the gate that refuses with its share of the elements."""
    judgement = judge(data, outputs, 0xFF)
    (entry,) = (e for e in measure_accuracy(judgement.outputs) if e.tensor == "out")
    numbers = f"{entry.mismatch_fraction:.2%} | {entry.max_abs:.3f} | {entry.max_rel:.2f}"
    if judgement.finding is None:
        return numbers, "accepted"
    size = data.references[judgement.finding.tensor].exact.size
    return numbers, f"{judgement.finding.gate}: {judgement.finding.wrong.size / size:.1%} wrong"


if __name__ == "__main__":
    main()
