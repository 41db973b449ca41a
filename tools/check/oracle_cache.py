"""Inputs and references on disk, one folder per case: raw .npy files that are mapped, not read.

An entry is written beside its place and renamed into it, so that it is whole or absent. Every file
carries its size and a checksum; an entry that does not fit is dropped and made again. Above the
size limit the entries not used for longest go. Two processes may make the same entry at once: the
second finds the place taken and keeps what it has in memory. Names are hashes, so that a listing
does not show hidden seeds.
"""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import kopt.kernels
from kopt.config.files import (
    content_hash,
    ensure_folder,
    evict_least_used,
    publish_folder,
    remove_folder,
    staging_folder,
)
from kopt.config.settings import Settings

from .case_data import CaseData, CaseKey, make_case_data
from .case_files import CaseFiles, case_from_files, case_to_files

_FORMAT = "1"
_LIMIT_BYTES = 4 << 30


@dataclass(frozen=True)
class OracleCache:
    """The cache in one folder."""

    folder: Path
    limit_bytes: int = _LIMIT_BYTES

    def load(self, key: CaseKey) -> CaseData:
        """Return the case, from disk if it is there, else made and kept.

        Raises:
            SetupError: The folder cannot be created or written.
            ToolError: The problem's oracle is at fault.
        """
        place = self.folder / case_hash(key)
        kept = _read(place)
        if kept is not None:
            return kept
        data = make_case_data(key)
        ensure_folder(self.folder)
        try:
            self._write(place, data)
        except OSError:
            # A full disk costs the reuse, not the check.
            return data
        return data

    def _write(self, place: Path, data: CaseData) -> None:
        evict_least_used(self.folder, self.limit_bytes, _size_bytes)
        with staging_folder(place) as staging:
            files = case_to_files(data)
            sizes = {name: _save(staging / f"{name}.npy", a) for name, a in files.arrays.items()}
            entry = {"files": sizes, "case": files.description}
            (staging / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
            publish_folder(staging, place)


def open_cache(settings: Settings) -> OracleCache:
    """Return the cache under KOPT_HOME."""
    return OracleCache(settings.oracle_cache)


def case_hash(key: CaseKey) -> str:
    """Return the name of a case's entry: everything that its arrays follow from, hashed."""
    described = key.problem.model_dump_json(exclude={"folder", "workloads", "baselines"})
    parts = [_FORMAT, np.__version__, described, key.workload.model_dump_json()]
    # The rounding helpers and what else oracles import decide the results too.
    package = Path(next(iter(kopt.kernels.__path__)))
    modules = [*sorted(key.problem.folder.glob("*.py")), *sorted(package.glob("*.py"))]
    code = (part for path in modules for part in (path.name, path.read_bytes()))
    return content_hash([*parts, str(key.seed), key.regime, *code])


def _save(path: Path, array: npt.NDArray[Any]) -> list[int]:
    """Write `array` and return its file's size and its checksum."""
    np.save(path, array, allow_pickle=False)
    return [path.stat().st_size, _checksum(array)]


def _checksum(array: npt.NDArray[Any]) -> int:
    """Return the sum of the bytes as 64-bit words: memory speed, and finds lost or zeroed pages."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    words = data[: data.size // 8 * 8].view(np.uint64)
    rest = int.from_bytes(data[words.size * 8 :].tobytes(), "little")
    return (int(np.add.reduce(words, dtype=np.uint64)) + rest) % (1 << 64)


def _read(place: Path) -> CaseData | None:
    """Return the entry at `place`; None, and the place empty, if it is absent or damaged."""
    try:
        entry = json.loads((place / "entry.json").read_text(encoding="utf-8"))
        arrays = {
            name: _map(place / f"{name}.npy", size, checksum)
            for name, (size, checksum) in entry["files"].items()
        }
        os.utime(place)
        return case_from_files(CaseFiles(arrays, entry["case"]))
    except (ValueError, KeyError, TypeError, OSError):
        if place.exists():
            remove_folder(place)
        return None


def _map(path: Path, size: int, checksum: int) -> npt.NDArray[Any]:
    if path.stat().st_size != size:
        raise ValueError(f"{path} was cut")
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if _checksum(array) != checksum:
        raise ValueError(f"{path} was changed")
    return np.asarray(array)


def _size_bytes(entry: Path) -> int:
    return sum(file.stat().st_size for file in entry.iterdir())
