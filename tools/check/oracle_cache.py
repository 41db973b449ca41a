"""Inputs and references on disk, one folder per case: raw .npy files that are mapped, not read.

An entry is written beside its place and renamed into it, so that it is whole or absent. Every file
carries its size and a checksum; an entry that does not fit is dropped and made again. Above the
size limit the entries not used for longest go. Two processes may make the same entry at once: the
second finds the place taken and keeps what it has in memory. Names are hashes, so that a listing
does not show hidden seeds.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import kopt.kernels
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings

from .case_data import CaseData, CaseKey, make_case_data
from .case_files import CaseFiles, case_from_files, case_to_files

_FORMAT = "1"
_LIMIT_BYTES = 4 << 30
_PARTIAL = ".partial-"


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
        self._make_room()
        partial = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{os.getpid()}-", dir=self.folder))
        try:
            files = case_to_files(data)
            sizes = {name: _save(partial / f"{name}.npy", a) for name, a in files.arrays.items()}
            entry = {"files": sizes, "case": files.description}
            (partial / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
            os.rename(partial, place)  # fails if another process was first
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _make_room(self) -> None:
        """Drop the entries not used for longest until the rest takes less than the limit."""
        entries = sorted(
            (used, size, path)
            for path in self.folder.iterdir()
            if (usage := _usage(path))
            for used, size in [usage]
        )
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit_bytes:
                return
            _drop(path)
            total -= size


def open_cache(settings: Settings) -> OracleCache:
    """Return the cache under KOPT_HOME."""
    return OracleCache(settings.oracle_cache)


def case_hash(key: CaseKey) -> str:
    """Return the name of a case's entry: everything that its arrays follow from, hashed."""
    digest = hashlib.sha256()
    described = key.problem.model_dump_json(exclude={"folder", "workloads", "baselines"})
    parts = [_FORMAT, np.__version__, described, key.workload.model_dump_json()]
    parts += [str(key.seed), key.regime]
    for part in parts:
        digest.update(part.encode() + b"\0")
    # The rounding helpers and what else oracles import decide the results too.
    package = Path(next(iter(kopt.kernels.__path__)))
    for folder in (key.problem.folder, package):
        for path in sorted(folder.glob("*.py")):
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


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
        os.utime(place / "entry.json")
        return case_from_files(CaseFiles(arrays, entry["case"]))
    except (ValueError, KeyError, TypeError, OSError):
        if place.exists():
            _drop(place)
        return None


def _map(path: Path, size: int, checksum: int) -> npt.NDArray[Any]:
    if path.stat().st_size != size:
        raise ValueError(f"{path} was cut")
    array: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if _checksum(array) != checksum:
        raise ValueError(f"{path} was changed")
    return np.asarray(array)


def _drop(path: Path) -> None:
    """Remove an entry in one step as others see it; a process that has it mapped keeps its view."""
    try:
        grave = tempfile.mkdtemp(prefix=f"{_PARTIAL}{os.getpid()}-", dir=path.parent)
        os.rename(path, Path(grave) / path.name)
    except OSError:
        return
    shutil.rmtree(grave, ignore_errors=True)


def _usage(path: Path) -> tuple[int, int] | None:
    """Return (last use in ns, bytes) of an entry; None for what is no entry.

    The remains of a process that died while writing count as used at the epoch: they go first.
    """
    try:
        if path.name.startswith(_PARTIAL):
            if _is_alive(path.name):
                return None
            return 0, sum(file.stat().st_size for file in path.rglob("*"))
        size = sum(file.stat().st_size for file in path.iterdir())
        return (path / "entry.json").stat().st_mtime_ns, size
    except OSError:
        return None


def _is_alive(partial_name: str) -> bool:
    process = partial_name.removeprefix(_PARTIAL).split("-")[0]
    return Path("/proc", process).exists()
