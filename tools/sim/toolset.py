"""The compiled parts that every simulated candidate shares: the runtime and the precompiled header.

Built once per g++ and per version of the sources, in KOPT_HOME/cache/sim, content-addressed and
put in place by one rename, so that processes may race to build them.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.settings import Settings, ensure_folder
from kopt.tools.cuda.include_tree import cuda_include_folders

# no-tree-sra keeps vector loads whole, so that their width and alignment can be checked; the
# sanitizer's hooks are the simulator's own (runtime/memory.cpp).
CANDIDATE_FLAGS = (
    "-std=c++17",
    "-O1",
    "-g1",
    "-w",
    "-fsanitize=thread",
    "-fno-tree-sra",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-gnu-unique",
    "-fno-stack-protector",
    "-fno-pic",
    "-no-pie",
    "-fcf-protection=none",
    "-fdata-sections",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-DNDEBUG",
    "-DKOPT_SIM=1",
)
_RUNTIME_FLAGS = ("-std=c++17", "-O2", "-fno-pic", "-no-pie", "-fno-strict-aliasing", "-w")


@dataclass(frozen=True)
class SimToolset:
    """Where the shared parts lie."""

    gxx: Path
    folder: Path
    """Holds runtime.o and include/kopt_sim/device.h with its .gch beside it."""
    digest: str
    """Changes with the sources, the flags and the compiler: part of every program's cache key."""

    @property
    def runtime_object(self) -> Path:
        """The runtime, linked into one relocatable object."""
        return self.folder / "runtime.o"

    @property
    def include_folders(self) -> tuple[Path, ...]:
        """For -I, in this order: the simulator's headers stand before CUDA's of the same name."""
        return (self.folder / "include", *cuda_include_folders())


@lru_cache
def find_toolset(settings: Settings) -> SimToolset:
    """Return the toolset, building it if this g++ has not built it yet (about 5 s of CPU).

    Raises:
        SetupError: g++ is missing, cannot compile the runtime, or KOPT_HOME cannot be written.
    """
    located = shutil.which(settings.gxx)
    if located is None:
        raise SetupError(
            f"the simulator needs a C++ compiler and {settings.gxx!r} is not on PATH; "
            "install g++ or set KOPT_CXX"
        )
    gxx = Path(located)
    sources = _source_files()
    digest = _digest(gxx, sources)
    folder = ensure_folder(settings.sim_cache) / f"toolset-{digest[:24]}"
    if not folder.is_dir():
        _build(gxx, sources, folder)
    return SimToolset(gxx, folder, digest)


def _source_files() -> dict[str, bytes]:
    """Return runtime/ and include/ of this package, by relative path."""
    found: dict[str, bytes] = {}
    with as_file(files("kopt.tools.sim")) as root:
        for part in ("runtime", "include"):
            for path in sorted((root / part).rglob("*")):
                if path.is_file():
                    found[str(path.relative_to(root))] = path.read_bytes()
    return found


def _digest(gxx: Path, sources: dict[str, bytes]) -> str:
    version = subprocess.run([gxx, "-v"], capture_output=True, check=False).stderr
    digest = hashlib.sha256(version)
    digest.update(repr((CANDIDATE_FLAGS, _RUNTIME_FLAGS, cuda_include_folders())).encode())
    for name, data in sources.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()


def _build(gxx: Path, sources: dict[str, bytes], folder: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix=".toolset-", dir=folder.parent))
    try:
        for name, data in sources.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        units = sorted(str(path) for path in (work / "runtime").glob("*.cpp"))
        _run([gxx, *_RUNTIME_FLAGS, "-r", "-nostdlib", "-o", work / "runtime.o", *units])
        # Compiled where it will lie: the header's place is part of what g++ records.
        shutil.rmtree(work / "runtime")
        header = work / "include" / "kopt_sim" / "device.h"
        includes = [work / "include", *cuda_include_folders()]
        command: list[str | Path] = [gxx, *CANDIDATE_FLAGS, *(f"-I{path}" for path in includes)]
        _run([*command, "-x", "c++-header", header, "-o", f"{header}.gch"])
        _put_in_place(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put_in_place(work: Path, folder: Path) -> None:
    try:
        os.rename(work, folder)
    except OSError:
        if not folder.is_dir():  # else another process was quicker, with the same contents
            raise


def _run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        first = done.stderr.strip().splitlines()[:3]
        raise SetupError(
            f"{command[0]} cannot compile the simulator's runtime: {' | '.join(first)}; "
            "it needs a g++ with C++17 and -fsanitize=thread (10 or later)"
        )
