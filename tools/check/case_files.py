"""A case as named arrays and a small description, and back: what the oracle cache stores.

bfloat16 and fp8 arrays are stored as unsigned integers, since .npy knows no such dtypes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import DTYPE_SIZE_BYTES, numpy_dtype
from kopt.kernels.oracle import ScaledBy

from .case_data import CaseData
from .reference import Reference, RowNoise

_OPTIONAL = ("written", "offsets", "slack")


@dataclass(frozen=True)
class CaseFiles:
    """Arrays by file name, and JSON data for the rest."""

    arrays: Mapping[str, npt.NDArray[Any]]
    description: Mapping[str, Any]


def case_to_files(data: CaseData) -> CaseFiles:
    """Return `data` in plain dtypes."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    inputs: dict[str, str] = {}
    references: dict[str, dict[str, Any]] = {}
    for name, array in data.inputs.items():
        inputs[name] = _dtype_name(array.dtype)
        arrays[f"input-{name}"] = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    for name, reference in data.references.items():
        references[name] = _describe(reference)
        for part, array in _parts(reference).items():
            arrays[f"output-{name}-{part}"] = array
    return CaseFiles(arrays, {"inputs": inputs, "references": references})


def case_from_files(files: CaseFiles) -> CaseData:
    """Return the case; KeyError or TypeError if `files` is not from `case_to_files`."""
    inputs = {
        name: files.arrays[f"input-{name}"].view(numpy_dtype(dtype))
        for name, dtype in files.description["inputs"].items()
    }
    references = {
        name: _reference(files.arrays, f"output-{name}-", fields)
        for name, fields in files.description["references"].items()
    }
    return CaseData(inputs, references)


def _dtype_name(dtype: np.dtype[Any]) -> str:
    for name in DTYPE_SIZE_BYTES:
        if numpy_dtype(name) == dtype:
            return name
    raise ValueError(f"no problem dtype is stored as {dtype}")


def _parts(reference: Reference) -> dict[str, npt.NDArray[Any]]:
    parts = {"exact": reference.exact, "bits": reference.bits, "unit": reference.unit}
    for name in _OPTIONAL:
        if getattr(reference, name) is not None:
            parts[name] = getattr(reference, name)
    if reference.noise is not None:
        noise = reference.noise
        parts["noise"] = np.stack([noise.correct_sq, noise.ulp_sq, noise.ulp_max])
    return parts


def _describe(reference: Reference) -> dict[str, Any]:
    scaled_by = reference.scaled_by
    return {
        "number_format": reference.number_format,
        "shape": list(reference.shape),
        "rows": reference.rows,
        "bit_exact": reference.bit_exact,
        "scaled_by": None if scaled_by is None else [scaled_by.tensor, scaled_by.block],
    }


def _reference(
    arrays: Mapping[str, npt.NDArray[Any]], prefix: str, fields: Mapping[str, Any]
) -> Reference:
    noise = arrays.get(f"{prefix}noise")
    scaled_by = fields["scaled_by"]
    return Reference(
        number_format=fields["number_format"],
        shape=tuple(fields["shape"]),
        rows=fields["rows"],
        exact=arrays[f"{prefix}exact"],
        bits=arrays[f"{prefix}bits"],
        written=arrays.get(f"{prefix}written"),
        offsets=arrays.get(f"{prefix}offsets"),
        scaled_by=None if scaled_by is None else ScaledBy(*scaled_by),
        bit_exact=fields["bit_exact"],
        slack=arrays.get(f"{prefix}slack"),
        unit=arrays[f"{prefix}unit"],
        noise=None if noise is None else RowNoise(noise[0], noise[1], noise[2]),
    )
