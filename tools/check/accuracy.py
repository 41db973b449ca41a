"""How close outputs came, for information: the gates decide, these numbers never do.

Differences are between dequantised values of the candidate and of the correctly rounded result:
code * scale, times what one unit of the codes is really worth.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kopt.kernels.check_result import TensorAccuracy

from .code_gate import scale_index, suspects
from .half_gate import half_error_ratio
from .number_formats import FLOAT_FORMATS, decode_bits
from .output import Indices, Output, in_parts
from .tolerances import FIXED_MAX_ABS, FIXED_MAX_REL


def measure_accuracy(outputs: Mapping[str, Output]) -> tuple[TensorAccuracy, ...]:
    """Return the accuracy of each float output of one accepted run."""
    return tuple(
        _measure(output, outputs)
        for output in outputs.values()
        if output.reference.number_format in FLOAT_FORMATS
    )


def worst_accuracy(measured: Iterable[TensorAccuracy]) -> tuple[TensorAccuracy, ...]:
    """Return one entry per tensor, each number the worst over all runs."""
    by_tensor: dict[str, list[TensorAccuracy]] = {}
    for entry in measured:
        by_tensor.setdefault(entry.tensor, []).append(entry)
    return tuple(
        TensorAccuracy(
            tensor=tensor,
            mismatch_fraction=max(one.mismatch_fraction for one in runs),
            max_abs=max(one.max_abs for one in runs),
            max_rel=max(one.max_rel for one in runs),
            within_fixed_limits=all(one.within_fixed_limits for one in runs),
            l2_ratio=max((one.l2_ratio for one in runs if one.l2_ratio is not None), default=None),
            worst_on=_worst_on(runs),
        )
        for tensor, runs in by_tensor.items()
    )


def _worst_on(runs: Sequence[TensorAccuracy]) -> dict[str, str]:
    """Return the inputs of the run that each worst number is of; none for a number that is 0."""
    numbers = ("mismatch_fraction", "max_abs", "max_rel", "l2_ratio")
    found: dict[str, str] = {}
    for name in numbers:
        worst = max(runs, key=lambda one: getattr(one, name) or 0.0)
        if getattr(worst, name):
            found |= {key: told for key, told in worst.worst_on.items() if key == name}
    return found


def on_inputs(measured: Iterable[TensorAccuracy], inputs: str) -> tuple[TensorAccuracy, ...]:
    """Return the accuracy of one run with the inputs that it met, in words."""
    told = dict.fromkeys(("mismatch_fraction", "max_abs", "max_rel", "l2_ratio"), inputs)
    return tuple(one.model_copy(update={"worst_on": told}) for one in measured)


def _measure(output: Output, outputs: Mapping[str, Output]) -> TensorAccuracy:
    scaled_by = output.reference.scaled_by
    scale = None if scaled_by is None else outputs[scaled_by.tensor]
    indices = output.differing if scale is None else suspects(output, scale)
    worst = in_parts(indices, lambda part: _worst(*_differences(output, scale, part)))
    max_abs, max_rel = (max(ones) for ones in zip(*worst, strict=True))
    places = output.storage_index(output.differing)
    # Both codes of a byte are one stored element, and next to one another.
    changed = places.size - int(np.count_nonzero(places[1:] == places[:-1]))
    written = output.reference.written
    total = output.bits.size if written is None else int(np.count_nonzero(written))
    return TensorAccuracy(
        tensor=output.name,
        mismatch_fraction=changed / max(total, 1),
        max_abs=max_abs,
        max_rel=max_rel,
        within_fixed_limits=max_abs < FIXED_MAX_ABS and max_rel < FIXED_MAX_REL,
        l2_ratio=half_error_ratio(output),
    )


def _worst(
    difference: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]
) -> tuple[float, float]:
    """Return the largest difference, and the largest in shares of what is expected."""
    nonzero = expected != 0
    relative = difference[nonzero] / np.abs(expected[nonzero])
    return float(difference.max(initial=0.0)), float(relative.max(initial=0.0))


def _differences(
    output: Output, scale: Output | None, indices: Indices
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return |candidate - correct| and correct, dequantised, where anything differs."""
    got = output.values_at(indices)
    expected = decode_bits(output.expected_bits_at(indices), output.reference.number_format)
    if scale is not None:
        at = scale_index(output, scale, indices)
        got = got * scale.values_at(at)
        expected = expected * scale.expected_values_at(at)
    unit = output.reference.unit_at(indices)
    finite = np.isfinite(got) & np.isfinite(expected)
    difference = np.abs(got[finite] - expected[finite]) * np.abs(unit[finite])
    return difference, expected[finite] * unit[finite]
