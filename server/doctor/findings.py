"""Findings of `kopt doctor` on compilers, sandbox, disk, documents and models.

What a GPU needs is in `gpu_findings.py`. Nothing is asked over the network.
"""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from kopt import __version__
from kopt.config.errors import KoptError, SetupError
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.search.models.prices import load_prices
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.docs.indexing.index_meta import built_sources, library_index_path
from kopt.tools.sandbox.ladder import available_level

MB = 1_000_000
EXTRA = ("tree-sitter", "tree-sitter-cuda", "wordllama")
"""The distributions of the extra `docs`."""
NEEDED_MB = 200
"""Free space for the simulator's parts, some hundred binaries and a few runs."""


@dataclass(frozen=True)
class DoctorFinding:
    """One thing that kopt uses, and whether this machine has it."""

    name: str
    is_present: bool
    is_required: bool
    detail: str
    """What was found and where, or what is missing and how to get it."""


def optional(name: str, is_present: bool, detail: str) -> DoctorFinding:
    """Return a finding on something that kopt works without."""
    return DoctorFinding(name, is_present, False, detail)


def machine_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield what kopt cannot work without."""
    yield _required("Python", lambda: f"{platform.python_version()}, kopt {__version__}")
    yield _required("platform", _platform)
    yield _required("host compiler", lambda: _host_compiler(settings))
    yield _required("CUDA compiler", lambda: _cuda_compiler(settings))
    yield _required("sandbox", lambda: _sandbox(settings))
    yield _required("state folder", lambda: _state_folder(settings))
    yield _required("problems", lambda: _problems(settings))
    yield _required("processor", lambda: f"{settings.jobs} processes at once (KOPT_JOBS)")


def docs_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield the library index, the extra that makes it better, and the key of Pinecone."""
    yield _library(settings)
    yield _extra()
    yield _pinecone(settings)


def model_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield the key of Claude and the table of prices."""
    yield _claude(settings)
    yield _prices(settings)


def _required(name: str, find: Callable[[], str]) -> DoctorFinding:
    """Return what `find` finds, or the KoptError that says what is missing."""
    try:
        return DoctorFinding(name, True, True, find())
    except KoptError as error:
        return DoctorFinding(name, False, True, str(error))


def _state_folder(settings: Settings) -> str:
    free_mb = shutil.disk_usage(ensure_folder(settings.home)).free // MB
    if free_mb < NEEDED_MB:
        raise SetupError(
            f"{settings.home} has {free_mb} MB free, {NEEDED_MB} are needed:"
            " free some space, or set KOPT_HOME to a folder on another disk"
        )
    return f"{settings.home} is writable, {free_mb / 1000:,.1f} GB free"


def _platform() -> str:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        raise SetupError(
            f"{platform.system()} {platform.machine()}: kopt runs on Linux x86_64 (WSL2 works too)"
        )
    return f"Linux {platform.release()} x86_64"


def _host_compiler(settings: Settings) -> str:
    path = shutil.which(settings.gxx)
    if path is None:
        raise SetupError(f"{settings.gxx} not found: apt install g++, or set KOPT_CXX")
    return path


def _cuda_compiler(settings: Settings) -> str:
    found = find_toolchain(settings)
    extras = [
        f"{name} {'found' if path else 'missing'}"
        for name, path in (("nvdisasm", found.nvdisasm), ("nvrtc", found.nvrtc))
    ]
    return f"nvcc {found.version} from {found.origin}: {found.nvcc} ({', '.join(extras)})"


def _sandbox(settings: Settings) -> str:
    level = available_level(settings)
    if level == "bubblewrap":
        return level
    return f"{level}; bubblewrap would be stronger (apt install bubblewrap)"


def _problems(settings: Settings) -> str:
    problems = load_problems(settings.problems)
    kernels = sum(len(problem.kernel_ids) for problem in problems.values())
    return f"{len(problems)} problems, {kernels} kernels (kopt list)"


def _library(settings: Settings) -> DoctorFinding:
    path = library_index_path(settings)
    built = built_sources(path)
    if not built:
        how = "not built: kopt docs build gets FlashInfer, vLLM, SGLang, CUTLASS and more"
        return optional("kernel library", False, how)
    documents = sum(source.chunks for source in built)
    said = f"{documents:,} documents, {path.stat().st_size / MB:,.0f} MB, of "
    names = [f"{source.source} {source.version or ''}".strip() for source in built]
    return optional("kernel library", True, said + ", ".join(names))


def _extra() -> DoctorFinding:
    lacking = [name for name in EXTRA if not _is_installed(name)]
    if not lacking:
        return optional("docs extra", True, ", ".join(EXTRA))
    how = f"{sys.executable} -m pip install 'kopt-mcp[docs]', then kopt docs build"
    what = f"no {', '.join(lacking)}: documents are cut and ranked less well"
    return optional("docs extra", False, f"{what}; {how}")


def _pinecone(settings: Settings) -> DoctorFinding:
    if settings.pinecone_api_key is None:
        said = "PINECONE_API_KEY is not set: searches ask nothing but this machine"
        return optional("Pinecone", False, said)
    said = f"PINECONE_API_KEY is set; searches ask the index {settings.pinecone_index_name} too"
    return optional("Pinecone", True, said)


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _claude(settings: Settings) -> DoctorFinding:
    if settings.claude is None:
        said = "ANTHROPIC_API_KEY is not set: kopt run sweeps declared tune values and writes none"
        return optional("Claude", False, said)
    name = "ANTHROPIC_API_KEY" if settings.claude.api_key else "ANTHROPIC_AUTH_TOKEN"
    return optional("Claude", True, f"{name} is set: kopt run has Claude write kernels")


def _prices(settings: Settings) -> DoctorFinding:
    try:
        table = load_prices(settings.home)
    except SetupError as error:
        return optional("prices of models", False, str(error))
    dates = sorted({price.dated for price in table.models.values()})
    seen = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    said = f"of {len(table.models)} models, seen {seen}; your own go to {table.own_file}"
    return optional("prices of models", True, said)
