"""What the results of an oracle follow from beside its inputs: files, kopt's modules, libraries.

An oracle.py may read what lies in its folder (a model, weights), import kopt's modules, and compute
with a library whose next version computes otherwise. Kernels are left out: no oracle reads them,
and their authors change them all the time.
"""

import hashlib
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kopt

_KERNELS = frozenset({".cu", ".cuh"})
_RESULTS = frozenset({"winners", "unproven", "__pycache__"})
_LIBRARIES = ("torch", "scipy", "ml_dtypes")
"""Distributions whose version counts where the code of a folder names them."""
_IMPORTED = re.compile(r"\bkopt((?:\.[a-z_0-9]+)+)")
_CHUNK_BYTES = 1 << 20


def oracle_parts(folder: Path) -> Iterator[str]:
    """Yield texts that change with whatever the oracle in `folder` computes from."""
    code = ""
    for path in oracle_files(folder):
        yield path.relative_to(folder).as_posix()
        yield file_digest(path)
        if path.suffix == ".py":
            code += path.read_text("utf-8", errors="replace")
    for module in _modules(code):
        yield module.name
        yield file_digest(module)
    for name in _LIBRARIES:
        if name in code:
            yield f"{name} {_version(name)}"


def oracle_files(folder: Path) -> Iterator[Path]:
    """Yield the files of a problem, at any depth, but for kernels and what is known of these."""
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        if not _RESULTS & set(inner.parts) and path.suffix not in _KERNELS and path.is_file():
            yield path


def _modules(code: str) -> Iterator[Path]:
    """Yield the modules of each package of kopt that `code` names; of kernels/ always.

    The rounding helpers and what else oracles import decide the results too.
    """
    root = Path(next(iter(kopt.__path__)))
    folders = {root / "kernels"}
    for dotted in _IMPORTED.findall(code):
        place = root.joinpath(*dotted.strip(".").split("."))
        folders.add(next(above for above in (place, *place.parents) if above.is_dir()))
    for folder in sorted(folders):
        yield from sorted(folder.glob("*.py"))


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    state = path.stat()
    return _digest(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4096)  # of a path with its size and time: every case of a check asks again
def _digest(path: Path, size_bytes: int, changed_ns: int) -> str:
    """Return the SHA-256 of a file as it is since `changed_ns`."""
    del size_bytes, changed_ns  # they tell this state of the file from others
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@lru_cache
def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "none"
