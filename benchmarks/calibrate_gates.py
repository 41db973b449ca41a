"""Print how far honest kernels are from correct rounding: where the gates' numbers come from.

Max abs and max rel are those of normal inputs.

For every problem, order of rounding (honest_orders.py), regime and seed, the emulated outputs go
through the very gates of `kopt check`, and the largest use of each bound is printed. Beside the
regimes there are two kinds of tie-rich inputs: `ties` are multiples of 1/8 with weights that are
powers of two, `few_values` are rows of +-1 and +-3, whose rounding errors repeat along the row.

    .venv/bin/python benchmarks/calibrate_gates.py [--seeds N] [--rows N]
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from honest_orders import Arrays, Order, emulations

from kopt.kernels.case_inputs import CASE_REGIMES, fill_ignored
from kopt.kernels.case_inputs import draw_inputs as draw_case
from kopt.kernels.expressions import evaluate_expression
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.rounding import round_to_bf16
from kopt.tools.check.accuracy import measure_accuracy
from kopt.tools.check.case_data import CaseData, CaseKey, in_steps_of
from kopt.tools.check.code_gate import scale_index, suspects
from kopt.tools.check.half_gate import half_error_ratio, half_row_ratios
from kopt.tools.check.judge import judge
from kopt.tools.check.number_formats import CODE_FORMATS, magnitudes, ordinals, storage_bits
from kopt.tools.check.output import Output
from kopt.tools.check.reference import make_reference
from kopt.tools.check.signed_errors import STEPS_PER_UNIT, signed_errors

_TIE_RICH = ("ties", "few_values")
_WIDTHS = {"H": 2048, "K": 2048}
_OTHER_AXES = {
    "merge_state": {"H": 8, "D": 128},
    "rope_quantize_fp8": {"H": 4, "R": 64, "C": 512},
    "silu_mul_fp4quant": {"B": 3, "K": 512},
    "silu_mul_fp4quant_linear": {"B": 3, "K": 512},
}
_POISON = 0xFF
_MANY = 2000  # errors whose share is more than the chance of few


@dataclass
class Extremes:
    """The largest use of every bound that was seen."""

    values: dict[str, float] = field(default_factory=dict[str, float])
    refused: list[str] = field(default_factory=list[str])

    def add(self, name: str, value: float) -> None:
        """Keep the larger of what was seen and `value`."""
        self.values[name] = max(self.values.get(name, 0.0), value)


def main() -> None:
    """Print one line per problem and order, then the largest of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=64)
    options = parser.parse_args()
    problems = load_problems()
    overall = Extremes()
    for name, emulation in emulations():
        problem = problems[name]
        workload = small_workload(problem, options.rows)
        for order in emulation.orders:
            seen = Extremes()
            for regime, seed in _draws(problem, options.seeds):
                inputs = draw_inputs(problem, workload, regime, seed)
                key = CaseKey(problem, workload, seed, regime)
                data = case_data(problem, inputs)
                data = replace(data, in_steps=in_steps_of(key, data))
                rng = np.random.default_rng([seed, 99])
                scalars: Arrays = {
                    scalar.name: np.array(scalar.value, dtype=np.float32)
                    for scalar in problem.scalars
                }
                given = fill_ignored(problem, inputs, regime)
                outputs = emulation.run({**given, **scalars}, order, rng)
                got = _over_poison(data, outputs)
                _measure(data, got, seen, regime)
            _print_line(name, order, seen)
            for key, value in seen.values.items():
                overall.add(key, value)
            overall.refused += [f"{name}, {order.name}, {case}" for case in seen.refused]
    print("\nlargest of all: " + _words(overall))
    for case in overall.refused:
        print(f"REFUSED {case}")


def _draws(problem: Problem, seeds: int) -> Iterator[tuple[str, int]]:
    names = {tensor.name for tensor in problem.tensors}
    rich = _TIE_RICH if "residual" in names else ()
    for regime in (*CASE_REGIMES, *rich):
        for seed in range(1, seeds + 1):
            yield regime, seed


def small_workload(problem: Problem, rows: int) -> Workload:
    """Return a workload with `rows` rows and narrow columns."""
    axes: dict[str, int] = {}
    fixed = {**_WIDTHS, **_OTHER_AXES.get(problem.name, {})}
    for name, expression in problem.axes.items():
        if expression is None:
            axes[name] = fixed.get(name, rows)
        else:
            axes[name] = evaluate_expression(expression, axes)
    return Workload(name="calibration", axes=axes)


def draw_inputs(problem: Problem, workload: Workload, regime: str, seed: int) -> Arrays:
    """Return inputs of one of `CASE_REGIMES`, or tie-rich ones."""
    rng = np.random.default_rng([seed, 0])
    oracle = load_oracle(problem)
    if regime in CASE_REGIMES:
        return draw_case(problem, oracle, workload, rng, regime)
    inputs = oracle.make_inputs(workload, rng, "normal")
    shape = inputs["input"].shape
    x: npt.NDArray[np.float64] = rng.integers(-32, 33, shape) / 8
    residual: npt.NDArray[np.float64] = rng.integers(-32, 33, shape) / 8
    if regime == "ties":
        inputs["weight"] = round_to_bf16(rng.choice([0.25, 0.5, 1.0, 2.0, 4.0], shape[1]))
    else:
        x = np.copysign(1.0, x)
        residual = np.multiply(x, np.where(residual > 0, 2.0, 0.0))
    inputs["input"], inputs["residual"] = round_to_bf16(x), round_to_bf16(residual)
    return inputs


def case_data(problem: Problem, inputs: Arrays) -> CaseData:
    """Return `inputs` with what the oracle expects of them."""
    scalars = {scalar.name: scalar.value for scalar in problem.scalars}
    expected = load_oracle(problem).expected(inputs, scalars)
    references = {name: make_reference(problem, name, entry) for name, entry in expected.items()}
    return CaseData(inputs, references)


def _over_poison(data: CaseData, outputs: Arrays) -> Arrays:
    """Return `outputs` with what must not be written as it was before."""
    result: Arrays = {}
    for name, reference in data.references.items():
        array = np.ascontiguousarray(outputs[name])
        if reference.written is not None:
            before = data.inputs.get(name, np.full(array.shape, -1, f"i{array.itemsize}"))
            bits, old = storage_bits(array), storage_bits(before)
            array = np.where(reference.written, bits, old).view(array.dtype).reshape(array.shape)
        result[name] = array
    return result


def _measure(data: CaseData, got: Arrays, seen: Extremes, regime: str) -> None:
    judgement = judge(data, got, _POISON)
    found = judgement.finding
    if found is not None:
        seen.refused.append(f"{regime}: {found.tensor!r}, gate {found.gate}: {found.note}")
    for output in judgement.outputs.values():
        _measure_output(output, judgement.outputs, seen)
        if regime not in _TIE_RICH and output.reference.number_format in STEPS_PER_UNIT:
            _measure_bias(output, judgement.outputs, seen)
    for accuracy in measure_accuracy(judgement.outputs):
        if accuracy.tensor in ("out", "input", "v_merged", "q_rope_out") and regime == "normal":
            seen.add("max abs", accuracy.max_abs)
            seen.add("max rel", accuracy.max_rel)


def _measure_output(output: Output, outputs: dict[str, Output], seen: Extremes) -> None:
    reference, indices = output.reference, output.differing
    scales = {
        other.reference.scaled_by.tensor
        for other in outputs.values()
        if other.reference.scaled_by is not None
    }
    ratio, rows = half_error_ratio(output), half_row_ratios(output)
    if ratio is not None and rows is not None:
        steps = _steps(output, indices)
        error = np.abs(output.values_at(indices) - reference.exact_at(indices))
        seen.add("ulp", steps[error > reference.slack_at(indices)].max(initial=0))
        seen.add("total", ratio)
        seen.add("row", float(rows.max(initial=0.0)))
    elif output.name in scales and reference.number_format == "float32":
        exact = reference.exact_at(indices)
        off = np.abs(output.values_at(indices) - exact) / np.abs(exact)
        seen.add("fp32 scale", float(off.max(initial=0.0)))
    elif output.name in scales:
        seen.add("scale steps", _steps(output, indices).max(initial=0))
        seen.add("scales off", indices.size / reference.exact.size)
    elif reference.number_format in CODE_FORMATS:
        by = reference.scaled_by
        seen.add("code window", _window(output, None if by is None else outputs[by.tensor]))
        seen.add("codes off", indices.size / reference.exact.size)
    elif not reference.bit_exact:
        exact = reference.exact_at(indices)
        error = np.abs(output.values_at(indices) - exact) - reference.slack_at(indices)
        relative = np.maximum(error, 0) / np.maximum(np.abs(exact), 2.0**-126)
        seen.add("float32", float(relative.max(initial=0.0)))


def _measure_bias(output: Output, outputs: dict[str, Output], seen: Extremes) -> None:
    """Note the mean error in steps, and which share of all errors does not cancel."""
    by = output.reference.scaled_by
    _, steps = signed_errors(output, None if by is None else outputs[by.tensor])
    seen.add("bias", abs(float(steps.sum())) / output.reference.exact.size)
    if steps.size >= _MANY:
        seen.add("bias share", abs(float(steps.sum())) / float(np.abs(steps).sum()))


def _steps(output: Output, indices: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    number_format = output.reference.number_format
    got = ordinals(output.bits_at(indices), number_format)
    right = ordinals(output.expected_bits_at(indices), number_format)
    return np.abs(got - right)


def _window(output: Output, scale: Output | None) -> float:
    """Return the widest relative distance past a decision boundary among the codes, slack off."""
    indices = output.differing if scale is None else suspects(output, scale)
    number_format = output.reference.number_format
    factor = np.ones(indices.size)
    if scale is not None:
        factor = np.abs(scale.values_at(scale_index(output, scale, indices)))
    kept = factor > 0
    exact = np.abs(output.reference.exact_at(indices[kept]))
    slack = np.broadcast_to(output.reference.slack_at(indices[kept]), exact.shape)
    quotient, slack = exact / factor[kept], slack / factor[kept]
    values = magnitudes(number_format)
    middle = (values[1:] + values[:-1]) / 2
    lower, upper = np.concatenate([[0.0], middle]), np.concatenate([middle, [np.inf]])
    code = np.abs(ordinals(output.bits_at(indices[kept]), number_format))
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(lower[code] > 0, (lower[code] - quotient - slack) / lower[code], 0.0)
        above = (quotient - slack - upper[code]) / upper[code]
    return float(max(np.nanmax(below, initial=0.0), np.nanmax(above, initial=0.0)))


def _print_line(name: str, order: Order, seen: Extremes) -> None:
    print(f"{name:34s} {order.name:24s} {_words(seen)}  refused {len(seen.refused)}")


def _words(seen: Extremes) -> str:
    return ", ".join(f"{key} {value:.4g}" for key, value in sorted(seen.values.items()))


if __name__ == "__main__":
    main()
