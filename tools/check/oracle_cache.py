"""Inputs and references on disk, one folder per case: raw .npy files that are mapped, not read.

An entry is written beside its place and renamed into it, so that it is whole or absent. Every file
carries its size and a checksum; an entry that does not fit is dropped and made again. Above the
size limit the entries not used for longest go. Two processes may make the same entry at once: the
second finds the place taken and keeps what it has in memory. Names are hashes, so that a listing
does not show hidden seeds.

A case is stored as named arrays and a small description; bfloat16 and fp8 arrays as unsigned
integers, since .npy knows no such dtypes.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.files import (
    content_hash,
    ensure_folder,
    evict_least_used,
    publish_folder,
    remove_folder,
    staging_folder,
)
from kopt.config.settings import Settings
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.graph_runs import GraphRunner
from kopt.kernels.oracle import ScaledBy

from .case_data import CaseData, CaseKey, in_steps_of, make_case_data
from .judged_rows import JudgedRows
from .oracle_parts import oracle_parts
from .reference import Reference, RowNoise

Array = npt.NDArray[Any]

_FORMAT = "6"
_ENTRY = "entry.json"
LIMIT_BYTES = 4 << 30
"""The most that the cache takes."""


@dataclass(frozen=True)
class OracleCache:
    """The cache in one folder."""

    folder: Path
    limit_bytes: int = LIMIT_BYTES

    def load(self, key: CaseKey, graphs: GraphRunner | None = None) -> CaseData:
        """Return the case, from disk if it is there, else made, with `graphs` if given, and kept.

        Raises:
            SetupError: The folder cannot be created or written.
            ToolError: The problem's oracle is at fault.
            InfraError: The device of `graphs` failed.
        """
        place = self.folder / case_hash(key)
        kept = _read(place)
        if kept is not None:
            return replace(kept, in_steps=in_steps_of(key, kept))
        data = make_case_data(key, graphs)
        ensure_folder(self.folder)
        try:
            self._write(place, data)
        except OSError:
            # A full disk costs the reuse, not the check.
            return data
        return data

    def _write(self, place: Path, data: CaseData) -> None:
        """Keep a case, unless the cache has no room for it even where it is alone."""
        arrays, described = _taken_apart(data)
        if sum(array.nbytes for array in arrays.values()) <= self.limit_bytes:
            self._publish(place, arrays, described)
        evict_least_used(self.folder, self.limit_bytes, _size_bytes)

    def _publish(self, place: Path, arrays: dict[str, Array], described: dict[str, Any]) -> None:
        with staging_folder(place) as staging:
            sizes = {name: _save(staging / f"{name}.npy", a) for name, a in arrays.items()}
            entry = {"files": sizes, "case": described}
            text = json.dumps(entry)
            (staging / _ENTRY).write_text(f"{content_hash([text])}\n{text}", encoding="utf-8")
            publish_folder(staging, place)


def open_cache(settings: Settings) -> OracleCache:
    """Return the cache under KOPT_HOME."""
    return OracleCache(settings.oracle_cache)


def case_hash(key: CaseKey) -> str:
    """Return the name of a case's entry: everything that its arrays follow from, hashed."""
    described = key.problem.model_dump_json(exclude={"folder", "workloads", "baselines"})
    parts = [_FORMAT, np.__version__, described, key.workload.model_dump_json()]
    return content_hash([*parts, str(key.seed), key.regime, *oracle_parts(key.problem.folder)])


def _save(path: Path, array: Array) -> list[int]:
    """Write `array` and return its file's size and its checksum."""
    np.save(path, array, allow_pickle=False)
    return [path.stat().st_size, _checksum(path)]


def _checksum(path: Path) -> int:
    """Return the sum of a file's 64-bit words, its header's too: finds lost or changed pages.

    It takes the time of reading memory.
    """
    data: Array = np.memmap(path, np.uint8, mode="r")
    words = data[: data.size // 8 * 8].view(np.uint64)
    rest = int.from_bytes(data[words.size * 8 :].tobytes(), "little")
    return (int(np.add.reduce(words, dtype=np.uint64)) + rest) % (1 << 64)


def _read(place: Path) -> CaseData | None:
    """Return the entry at `place`; None, and the place empty, if it is absent or damaged."""
    try:
        digest, _, text = (place / _ENTRY).read_text(encoding="utf-8").partition("\n")
        if digest != content_hash([text]):
            raise ValueError(f"{place / _ENTRY} was changed")
        entry = json.loads(text)
        arrays = {
            name: _map(place / f"{name}.npy", size, checksum)
            for name, (size, checksum) in entry["files"].items()
        }
        os.utime(place)
        return _put_together(arrays, entry["case"])
    except (ValueError, KeyError, TypeError, OSError):
        if place.exists():
            remove_folder(place)
        return None


def _map(path: Path, size: int, checksum: int) -> Array:
    if path.stat().st_size != size:
        raise ValueError(f"{path} was cut")
    if _checksum(path) != checksum:
        raise ValueError(f"{path} was changed")
    array: Array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(array)


def _size_bytes(entry: Path) -> int:
    return sum(file.stat().st_size for file in entry.iterdir())


_JUDGED = "judged-rows"
_NOISE = tuple(field.name for field in fields(RowNoise))


def _taken_apart(data: CaseData) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays of a case by file name, in plain dtypes, and JSON data for the rest."""
    arrays: dict[str, Array] = {}
    inputs: dict[str, str] = {}
    references: dict[str, dict[str, Any]] = {}
    for name, array in data.inputs.items():
        inputs[name] = array.dtype.name
        arrays[f"input-{name}"] = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    for name, reference in data.references.items():
        noise = {} if reference.noise is None else vars(reference.noise)
        parts = {part: value for part, value in vars(reference).items() if part != "noise"} | noise
        references[name] = {part: v for part, v in parts.items() if not isinstance(v, np.ndarray)}
        arrays |= {
            f"output-{name}-{part}": value
            for part, value in parts.items()
            if isinstance(value, np.ndarray)
        }
        if reference.scaled_by is not None:
            references[name]["scaled_by"] = astuple(reference.scaled_by)
    judged = data.judged
    if judged is not None:
        arrays[_JUDGED] = judged.rows
    rows = None if judged is None else {"total": judged.total, "places": dict(judged.places)}
    return arrays, {"inputs": inputs, "references": references, "judged": rows}


def _put_together(arrays: Mapping[str, Array], described: Mapping[str, Any]) -> CaseData:
    """Return the case; KeyError or TypeError if something of it is missing."""
    inputs = {
        name: arrays[f"input-{name}"].view(numpy_dtype(dtype))
        for name, dtype in described["inputs"].items()
    }
    references: dict[str, Reference] = {}
    for name, parts in described["references"].items():
        prefix = f"output-{name}-"
        found = parts | {"shape": tuple(parts["shape"])}
        found |= {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
        if found["scaled_by"] is not None:
            found["scaled_by"] = ScaledBy(*found["scaled_by"])
        noise = {part: found.pop(part) for part in _NOISE if part in found}
        references[name] = Reference(**found, noise=RowNoise(**noise) if noise else None)
    rows = described["judged"]
    judged = None if rows is None else JudgedRows(arrays[_JUDGED], **rows)
    return CaseData(inputs, references, judged=judged)
