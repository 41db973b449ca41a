"""One run's outputs before all gates: which gate judges which output, and in which order.

Scales come before the codes that are read through them, so that a wrong scale is reported as such
and not as many wrong codes. Within an output: NaN first, then bytes that had to stay, then the gate
of its format, then errors that all point one way. The first finding ends the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .bias_gate import Partners, bias_gate
from .budget_gate import budget_gate
from .case_data import CaseData
from .code_gate import code_gate, code_scale_gate, float_scale_gate
from .half_gate import half_gate
from .number_formats import CODE_FORMATS, FLOAT_FORMATS, HALF_FORMATS
from .output import Finding, Output, finding_in_row, initial_bits
from .plain_gates import exact_gate, finite_gate, float_gate, untouched_gate
from .signed_errors import STEPS_PER_UNIT

GATES = {
    **dict.fromkeys(HALF_FORMATS, half_gate),
    "float32": float_gate,
    "float64": float_gate,
}
"""What judges values, by number format; without an entry there is one right answer."""
SCALE_GATES = {"float8_e4m3fn": code_scale_gate, "float32": float_scale_gate}
"""What judges block scales, by dtype; without an entry they are values like any others."""


@dataclass(frozen=True)
class Judgement:
    """What the gates say of one run."""

    outputs: dict[str, Output]
    finding: Finding | None


def judge(data: CaseData, arrays: Mapping[str, npt.NDArray[Any]], poison: int) -> Judgement:
    """Return the first finding in the outputs of one run, or none.

    `arrays` has every `out` and `inout` tensor as the device gave it back; `poison` is the byte
    that filled pure outputs before.
    """
    outputs = {name: data.output(name, arrays[name]) for name in data.references}
    scales = {
        reference.scaled_by.tensor
        for reference in data.references.values()
        if reference.scaled_by is not None
    }
    for name in sorted(outputs, key=lambda name: name not in scales):  # stable: else call order
        output = outputs[name]
        finding = (
            _stray_gate(output, arrays[name])
            or finite_gate(output)
            or untouched_gate(output, initial_bits(output, poison, data.inputs.get(name)))
            or _value_gate(output, outputs, name in scales)
            or budget_gate(output)
            or _bias_gate(output, outputs, data)
        )
        if finding is not None:
            return Judgement(outputs, finding)
    return Judgement(outputs, None)


def _stray_gate(output: Output, whole: npt.NDArray[Any]) -> Finding | None:
    """Refuse NaN in rows that are not judged: no oracle has it as the right answer."""
    if output.judged is None or output.reference.number_format not in FLOAT_FORMATS:
        return None
    row = output.judged.stray_row(output.name, whole)
    return None if row is None else finding_in_row(output, "finite", row, "nan", "NaN")


def _bias_gate(output: Output, outputs: Mapping[str, Output], data: CaseData) -> Finding | None:
    reference = output.reference
    if reference.bit_exact or reference.number_format not in STEPS_PER_UNIT:
        return None
    codes = [other for other in outputs.values() if _scale_of(other, outputs) is output]
    partners = Partners(_scale_of(output, outputs), codes[0] if codes else None)
    return bias_gate(output, partners, data.judged_inputs, data.in_steps)


def _scale_of(output: Output, outputs: Mapping[str, Output]) -> Output | None:
    scaled_by = output.reference.scaled_by
    return None if scaled_by is None else outputs[scaled_by.tensor]


def _value_gate(output: Output, outputs: Mapping[str, Output], is_scale: bool) -> Finding | None:
    reference, number_format = output.reference, output.reference.number_format
    if reference.bit_exact:
        return exact_gate(output)
    if is_scale and number_format in SCALE_GATES:
        return SCALE_GATES[number_format](output)
    if number_format in CODE_FORMATS:
        return code_gate(output, _scale_of(output, outputs))
    return GATES.get(number_format, exact_gate)(output)
