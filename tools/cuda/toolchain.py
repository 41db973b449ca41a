"""Finding the CUDA compiler of this machine and its version; nothing is compiled here.

Order: the KOPT_NVCC setting, the pip toolkit, CUDA_HOME, PATH. The first that exists is taken, so
that a setting is never silently replaced by something else. Base wheels bring headers only: the
compiler itself needs the `toolkit` extra or a system toolkit.
"""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from kopt.config.errors import SetupError
from kopt.config.settings import Settings, without_secrets
from kopt.kernels.compile_result import Toolchain

Origin = Literal["setting", "pip", "cuda_home", "path"]

HOW_TO_INSTALL = (
    'run `pip install "kopt-mcp[toolkit]"` (or `make run` in a checkout), '
    "or set KOPT_NVCC or CUDA_HOME to a CUDA 13 toolkit"
)


@dataclass(frozen=True)
class FoundToolchain:
    """The compiler and the tools that belong to it."""

    nvcc: Path
    root: Path
    """Folder that holds bin/, nvvm/ and include/."""
    version: str
    """Release and build of nvcc, e.g. 13.2.86."""
    origin: Origin
    gxx: Path
    """Host compiler, whose preprocessor nvcc needs even for a cubin."""
    nvdisasm: Path | None
    """The disassembler; None if there is none as new as the compiler."""
    nvrtc: Path | None
    """libnvrtc of the same release; None where there is none."""

    @property
    def release(self) -> str:
        """Major and minor version, e.g. 13.2."""
        return ".".join(self.version.split(".")[:2])

    def record(self, compiler: Literal["nvcc", "nvrtc"]) -> Toolchain:
        """Return what a result says about the compiler that was used."""
        path = self.nvrtc if compiler == "nvrtc" and self.nvrtc is not None else self.nvcc
        return Toolchain(
            compiler=compiler, version=self.version, path=str(path), origin=self.origin
        )


def find_toolchain(settings: Settings) -> FoundToolchain:
    """Return the toolchain that `settings` and this machine lead to.

    Raises:
        SetupError: There is no nvcc or no host compiler; the message says how to get one.
    """
    for origin, path in _nvcc_candidates(settings):
        if path.is_file():
            return _describe(path.resolve(), origin, settings.gxx)
        if origin == "setting":
            raise SetupError(f"KOPT_NVCC is {path}, which is not a file: correct or unset it")
    raise SetupError(f"no CUDA compiler (nvcc) found; {HOW_TO_INSTALL}")


def pip_toolkit_root() -> Path | None:
    """Return site-packages/nvidia/cu13, shared by all CUDA 13 wheels; None without any of them."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        root = Path(folder) / "cu13"
        if root.is_dir():
            return root
    return None


def _nvcc_candidates(settings: Settings) -> Iterator[tuple[Origin, Path]]:
    if settings.nvcc is not None:
        yield "setting", settings.nvcc
    pip_root = pip_toolkit_root()
    if pip_root is not None:
        yield "pip", pip_root / "bin" / "nvcc"
    if settings.cuda_home is not None:
        yield "cuda_home", settings.cuda_home / "bin" / "nvcc"
    on_path = shutil.which("nvcc")
    if on_path is not None:
        yield "path", Path(on_path)


@lru_cache
def _describe(nvcc: Path, origin: Origin, gxx_name: str) -> FoundToolchain:
    gxx = shutil.which(gxx_name)
    if gxx is None:
        raise SetupError(
            f"no host compiler {gxx_name!r} found, which nvcc needs: install g++ "
            "(apt install g++) or set KOPT_CXX"
        )
    version, root = _nvcc_facts(nvcc)
    return FoundToolchain(
        nvcc=root / "bin" / "nvcc",
        root=root,
        version=version,
        origin=origin,
        gxx=Path(gxx),
        nvdisasm=_find_nvdisasm(root, version),
        nvrtc=_find_nvrtc(root),
    )


def _nvcc_facts(nvcc: Path) -> tuple[str, Path]:
    """Return the version and the root that nvcc itself reports.

    A dry run names the root even where `nvcc` on PATH is a shell script that starts another one.
    """
    version_text = _output_of(nvcc, "--version")
    version = re.search(r"\bV(\d+\.\d+\.\d+)", version_text)
    if version is None:
        raise SetupError(f"{nvcc} --version does not name a version; {HOW_TO_INSTALL}")
    dry_run = _output_of(nvcc, "--dryrun", "-cubin", "-x", "cu", "/dev/null")
    here = re.search(r"^#\$ _HERE_=(.+)$", dry_run, re.MULTILINE)
    folder = Path(here.group(1)) if here else nvcc.parent
    return version.group(1), folder.resolve().parent


def _output_of(program: Path, *arguments: str) -> str:
    try:
        run = subprocess.run(
            [program, *arguments],
            env=without_secrets(),
            capture_output=True,
            check=False,
            timeout=30,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{program} does not run: {error}; {HOW_TO_INSTALL}") from error
    return run.stdout + run.stderr


def _find_nvdisasm(root: Path, nvcc_version: str) -> Path | None:
    """Return the toolkit's own nvdisasm, else another one that is at least as new."""
    own = root / "bin" / "nvdisasm"
    if own.is_file():
        return own
    pip_root = pip_toolkit_root()
    on_path = shutil.which("nvdisasm")
    others = [pip_root / "bin" / "nvdisasm"] if pip_root else []
    others += [Path(on_path)] if on_path else []
    for path in others:
        if path.is_file():
            found = re.search(r"\bV(\d+\.\d+)", _output_of(path, "--version"))
            if found and _release_key(found.group(1)) >= _release_key(nvcc_version):
                return path
    return None


def _find_nvrtc(root: Path) -> Path | None:
    """Return libnvrtc beside the compiler; one of another release would give other SASS."""
    for folder in ("lib", "lib64"):
        path = root / folder / "libnvrtc.so.13"
        if path.is_file():
            return path
    return None


def _release_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])
