"""Finding Nsight Compute and compute-sanitizer on this machine; nothing of theirs is run on a GPU.

Both are taken from CUDA_HOME, PATH, the usual places of an installation and the pip toolkit, in
this order; the first that is whole counts. ncu has no pip package. The pip packages of
compute-sanitizer 13.0 and 13.2 lack the program that starts what is examined, and are passed over.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kopt.config.settings import Settings, without_secrets
from kopt.tools.cuda.toolchain import pip_toolkit_root

HOW_TO_GET_NCU = (
    "install Nsight Compute (it comes with the CUDA toolkit) and name it with KOPT_NCU or CUDA_HOME"
)
HOW_TO_GET_SANITIZER = (
    "install compute-sanitizer with a CUDA 13 toolkit and set CUDA_HOME, or "
    "`pip install 'nvidia-cuda-sanitizer-api>=13.5'`"
)
_STARTER = "TreeLauncherSubreaper"
"""What compute-sanitizer starts the examined program with; it lies beside it."""
_SYSTEM_ROOT = Path("/usr/local/cuda")
_NSIGHT_FOLDERS = Path("/opt/nvidia/nsight-compute")
_VERSION_S = 30.0


@dataclass(frozen=True)
class NvidiaTool:
    """A program that runs another one and looks into the GPU meanwhile."""

    path: Path
    name: str
    """With its version, e.g. Nsight Compute 2025.3.1."""
    root: Path
    """Folder with everything that it needs beside itself."""
    options: frozenset[str]
    """Long options that its help names, without dashes."""


def find_ncu(settings: Settings) -> NvidiaTool | None:
    """Return Nsight Compute's command line; None if there is none that runs."""
    return _first_that_runs(_ncu_candidates(settings), "Nsight Compute")


def find_sanitizer(settings: Settings) -> NvidiaTool | None:
    """Return compute-sanitizer; None if there is none that is whole and runs."""
    paths = _sanitizer_candidates(settings)
    whole = (path for path in paths if (path.resolve().parent / _STARTER).is_file())
    return _first_that_runs(whole, "compute-sanitizer")


def _first_that_runs(paths: Iterator[Path], title: str) -> NvidiaTool | None:
    tools = (_describe(path.resolve(), title) for path in paths if path.is_file())
    return next((tool for tool in tools if tool is not None), None)


def _ncu_candidates(settings: Settings) -> Iterator[Path]:
    if settings.ncu is not None:
        yield settings.ncu
        return
    for root in _cuda_roots(settings):
        yield root / "bin" / "ncu"
    on_path = shutil.which("ncu")
    if on_path is not None:
        yield Path(on_path)
    releases = _NSIGHT_FOLDERS.iterdir() if _NSIGHT_FOLDERS.is_dir() else ()
    for folder in sorted(releases, key=_release, reverse=True):
        yield folder / "ncu"


def _sanitizer_candidates(settings: Settings) -> Iterator[Path]:
    roots = list(_cuda_roots(settings))
    on_path = shutil.which("compute-sanitizer")
    if on_path is not None:
        roots.append(Path(on_path).resolve().parent.parent)
    pip_root = pip_toolkit_root()
    roots += [pip_root] if pip_root else []
    for root in roots:
        # What bin/ holds is a script that starts the program in the other folder.
        yield root / "compute-sanitizer" / "compute-sanitizer"
        yield root / "bin" / "compute-sanitizer"


def _cuda_roots(settings: Settings) -> Iterator[Path]:
    if settings.cuda_home is not None:
        yield settings.cuda_home
    yield _SYSTEM_ROOT


def _release(folder: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", folder.name))


@lru_cache
def _describe(path: Path, title: str) -> NvidiaTool | None:
    """Ask the program for its version and its options."""
    version = re.search(r"Version (\d+(?:\.\d+)*)", _output(path, "--version"))
    if version is None:
        return None
    release = ".".join(version[1].split(".")[:3])
    options = re.findall(r"--([a-z][a-z0-9-]+)", _output(path, "--help"))
    # The real file of a link or script lies in the installation, whose libraries stand around it.
    return NvidiaTool(path, f"{title} {release}", _installation(path), frozenset(options))


def _installation(path: Path) -> Path:
    """Return the folder that holds all of the tool: of a toolkit if it lies in one."""
    for parent in path.parents:
        if (parent / "bin" / "nvcc").is_file() or parent.parent == _NSIGHT_FOLDERS:
            return parent
    return path.parent


def _output(path: Path, option: str) -> str:
    try:
        run = subprocess.run(
            [path, option],
            env=without_secrets(),
            capture_output=True,
            check=False,
            timeout=_VERSION_S,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout
