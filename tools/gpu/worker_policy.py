"""What a worker process may read, write and see: the sandbox policy around `worker/__main__.py`.

A worker runs trusted host code (kopt, CUDA, torch, FlashInfer and the compilers that they start)
over device code that nobody has vetted. It is given the import path of this process, the toolkits,
the cubins and the GPUs; the rest of KOPT_HOME, expected outputs above all, is not there.
"""

import os
import re
import shutil
import site
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import kopt
from kopt.config.files import ensure_trusted_folder
from kopt.config.settings import Settings
from kopt.tools.sandbox.bubblewrap import PATH
from kopt.tools.sandbox.policy import SandboxPolicy, gpu_devices

LIFETIME_S = 14 * 24 * 3600.0
_FILE_BYTES = 1 << 37
_PROCESSES = 4096  # threads count: torch's and CUDA's pools, ninja with a compiler per core
_C_OF_CXX = {"clang++": "clang", "g++": "gcc", "c++": "cc"}
_CXX = re.compile(r"(?<![a-z])(?:clang|g|c)\+\+")
_DRIVER_FOLDERS = ("/run/opengl-driver", "/usr/local/nvidia", "/opt/cuda", "/opt/nvidia")
LIBRARIES = ("torch", "flashinfer")
"""What baselines import."""


@dataclass(frozen=True)
class WorkerSpec:
    """What a worker process is started with."""

    engine: str
    """`module:Class` of what answers requests (worker/__main__.py); made without arguments."""
    preload: tuple[str, ...] = ()
    """Modules that are imported before the worker reports in, e.g. torch and flashinfer; one that
    cannot be imported is no error here."""
    readable: tuple[Path, ...] = ()
    """Files and folders beside kopt, Python, the toolkits, the problems and the cubin cache."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables beside those of Settings.library_environment, which they replace."""


def worker_policy(spec: WorkerSpec, folder: Path, settings: Settings) -> SandboxPolicy:
    """Return the policy of a worker that exchanges files in `folder`.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    home = settings.home.absolute()
    caches = ensure_trusted_folder(settings.library_cache.absolute(), home)
    cubins = ensure_trusted_folder(settings.cubin_cache.absolute(), home)
    imports = _import_path()
    environment = {
        **dict(settings.library_environment),
        **_host_compiler(settings),
        **dict(spec.environment),
        "PATH": _search_path(settings),
        "PYTHONPATH": os.pathsep.join(map(str, imports)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONUSERBASE": site.getuserbase(),
        # Here, and not in the worker's own folder: what libraries build must outlive the worker.
        "HOME": str(caches),
        "FLASHINFER_WORKSPACE_BASE": str(caches),
        "CUTE_DSL_CACHE_DIR": str(caches / "cute-dsl"),
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "torch-inductor"),
    }
    if settings.cuda_home is not None:
        environment["CUDA_HOME"] = str(settings.cuda_home)
    return SandboxPolicy(
        readable=(
            *imports,
            *_package_folders(),
            *_library_roots(imports),
            *(Path(prefix) for prefix in (sys.prefix, sys.base_prefix)),
            *(Path(text) for text in _DRIVER_FOLDERS),
            *_named_folders(environment),
            *_build_programs(environment),
            *_own_problems(settings),
            cubins,
            *spec.readable,
        ),
        writable=(folder, caches),
        devices=gpu_devices(),
        environment=environment,
        wall_s=LIFETIME_S,
        cpu_s=None,
        file_bytes=_FILE_BYTES,
        processes=_PROCESSES,
    )


def _own_problems(settings: Settings) -> tuple[Path, ...]:
    """Return the folder of the user's own problems; that of a workspace may be missing."""
    own = settings.problems
    return (own.absolute(),) if own is not None and own.is_dir() else ()


def _import_path() -> list[Path]:
    """Return sys.path without the folder that Python puts in front unasked: anything may lie there.

    The folder of the script, or the current one, is first unless Python runs with -P.
    """
    entries = list(sys.path)
    script = os.path.dirname(os.path.abspath(sys.argv[0])) if sys.argv else ""
    unasked = ("", os.getcwd(), script)
    if entries and not sys.flags.safe_path and entries[0] in unasked:
        entries = [entry for entry in entries if entry not in unasked] + _own_parent(entries[0])
    return [Path(entry).absolute() for entry in entries if entry and os.path.exists(entry)]


def _own_parent(unasked: str) -> list[str]:
    """Return the folder after all if it is what kopt itself was imported from."""
    folder = os.path.abspath(unasked)
    return [folder] if os.path.join(folder, "kopt") in kopt.__path__ else []


def _package_folders() -> list[Path]:
    """Return the folder of kopt itself, wherever an install keeps it, and what is linked into it.

    All of it, since Python must list the folder in which it looks for modules.
    """
    roots = [Path(root) for root in kopt.__path__]
    return [*roots, *(part for root in roots for part in root.iterdir() if part.is_symlink())]


def _library_roots(imports: Iterable[Path]) -> list[Path]:
    """Return the source trees of libraries that are installed editable; imports nothing."""
    known = {path.resolve() for path in imports}
    roots: list[Path] = []
    for name in LIBRARIES:
        found = find_spec(name)
        for place in (found.submodule_search_locations or ()) if found else ():
            root = Path(place).resolve().parent
            if root not in known:
                roots.append(root)
    return roots


def _search_path(settings: Settings) -> str:
    """Return PATH with the programs of this Python and of the toolkit first: ninja, nvcc."""
    own = [os.path.dirname(sys.executable)]
    if settings.cuda_home is not None:
        own.append(str(settings.cuda_home / "bin"))
    given = dict(settings.library_environment).get("PATH", PATH)
    return os.pathsep.join([*own, given])


def _host_compiler(settings: Settings) -> dict[str, str]:
    """Return the variables by which libraries build with the host compiler that kopt uses.

    What else they name may lie in folders that the worker cannot read.
    """
    gxx = shutil.which(settings.gxx)
    if gxx is None:
        return {}
    gcc = _c_compiler(Path(gxx))
    return {"CXX": gxx} | ({} if gcc is None else {"CC": gcc})


def _c_compiler(gxx: Path) -> str | None:
    """Return the C compiler beside a C++ one, else any: Triton builds C that is no C++."""
    name = _CXX.sub(lambda found: _C_OF_CXX[found[0]], gxx.name)
    beside = gxx.with_name(name)
    if name != gxx.name and beside.is_file():
        return str(beside)
    return shutil.which("cc") or shutil.which("gcc")


def _build_programs(environment: Mapping[str, str]) -> list[Path]:
    """Return ninja, and the folders of nvcc and of the host compiler."""
    names = ("nvcc", environment.get("CXX", "c++"))
    found = [shutil.which(name, path=environment["PATH"]) for name in ("ninja", *names)]
    ninja, *compilers = found
    folders = [Path(path).resolve().parents[1] for path in compilers if path]
    return [Path(ninja), *folders] if ninja else folders


def _named_folders(environment: dict[str, str]) -> list[Path]:
    """Return the folders that library variables name, but no home folder and nothing above one."""
    home = Path.home()
    folders: list[Path] = []
    for name, value in environment.items():
        if name in ("PATH", "HOME", "PYTHONPATH", "PYTHONUSERBASE"):
            continue
        for text in value.split(os.pathsep):
            folder = Path(text)
            if folder.is_absolute() and folder.is_dir() and folder not in (home, *home.parents):
                folders.append(folder)
    return folders
