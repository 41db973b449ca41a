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
from kopt.config.files import ensure_folder, folder_size
from kopt.config.providers import NAMES, Provider
from kopt.config.sealed_folder import damage_notes
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.search.models.headless.installed import find_client, require_login
from kopt.search.models.prices import load_prices
from kopt.server.views.sizes import size_words
from kopt.tools.cuda.include_tree import cuda_include_folders
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.docs.indexing.index_meta import library_index_path, read_meta
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


Find = Callable[[], str]


def found(name: str, find: Find, *, is_required: bool = False) -> DoctorFinding:
    """Return what `find` finds, or the KoptError that says what is missing."""
    try:
        return DoctorFinding(name, True, is_required, find())
    except KoptError as error:
        return DoctorFinding(name, False, is_required, str(error))


def machine_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield what kopt cannot work without."""
    needed: dict[str, Find] = {
        "Python": lambda: f"{platform.python_version()}, kopt {__version__}",
        "platform": _platform,
        "host compiler": lambda: _host_compiler(settings),
        "CUDA compiler": lambda: _cuda_compiler(settings),
        "CUDA headers": _cuda_headers,
        "sandbox": lambda: _sandbox(settings),
        "state folder": lambda: _state_folder(settings),
        "problems": lambda: _problems(settings),
        "processor": lambda: f"{settings.jobs} processes at once (KOPT_JOBS)",
    }
    yield from (found(name, find, is_required=True) for name, find in needed.items())


def docs_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield the library index, the extra that makes it better, and the key of Pinecone."""
    yield found("kernel library", lambda: _library(settings))
    yield found("docs extra", _extra)
    yield found("Pinecone", lambda: _pinecone(settings))


def model_findings(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield the key of Claude, the clients that answer in its place, and the table of prices."""
    yield found("Claude", lambda: _claude(settings))
    yield found(NAMES["claude-code"], lambda: _client("claude-code"))
    yield found(NAMES["codex"], lambda: _client("codex"))
    yield found("prices of models", lambda: _prices(settings))


def _state_folder(settings: Settings) -> str:
    free_mb = shutil.disk_usage(ensure_folder(settings.home)).free // MB
    if free_mb < NEEDED_MB:
        raise SetupError(
            f"{settings.home} has {free_mb} MB free, {NEEDED_MB} are needed:"
            " free some space, or set KOPT_HOME to a folder on another disk"
        )
    taken, cached = (
        size_words(folder_size(folder)[0]) for folder in (settings.home, settings.home / "cache")
    )
    free = (
        f"{settings.home} is writable, {free_mb / 1000:,.1f} GB free; it takes {taken}, {cached} of"
        " it caches (kopt cache, kopt runs rm)"
    )
    notes = damage_notes(settings.home / "cache")
    return f"{free}; damaged parts of its cache, made again: {notes[-1]}" if notes else free


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
    if found.nvdisasm is None:
        raise SetupError(
            f"{found.nvcc} has no nvdisasm beside it: no time can be estimated;"
            " install 'kopt-mcp[toolkit]' or the whole CUDA toolkit"
        )
    extras = [f"nvdisasm found, nvrtc {'found' if found.nvrtc else 'missing'}"]
    return f"nvcc {found.version} from {found.origin}: {found.nvcc} ({', '.join(extras)})"


def _cuda_headers() -> str:
    include, _ = cuda_include_folders()
    return f"{include}: the simulator checks accesses, races and divergence"


def _sandbox(settings: Settings) -> str:
    level = available_level(settings)
    if level == "bubblewrap":
        return level
    return f"{level}; bubblewrap would be stronger (apt install bubblewrap)"


def _problems(settings: Settings) -> str:
    problems = load_problems(settings.problems)
    kernels = sum(len(problem.kernel_ids) for problem in problems.values())
    return f"{len(problems)} problems, {kernels} kernels (kopt list)"


def _library(settings: Settings) -> str:
    path = library_index_path(settings)
    built = read_meta(path).sources
    if not built:
        raise SetupError(
            "not built: kopt docs build gets FlashInfer, vLLM, SGLang, CUTLASS and more"
        )
    documents = sum(source.chunks for source in built)
    names = (f"{source.source} {source.version or ''}".strip() for source in built)
    return f"{documents:,} documents, {path.stat().st_size / MB:,.0f} MB, of {', '.join(names)}"


def _extra() -> str:
    lacking = [name for name in EXTRA if not _is_installed(name)]
    if lacking:
        raise SetupError(
            f"no {', '.join(lacking)}: documents are cut and ranked less well; {sys.executable} -m"
            " pip install 'kopt-mcp[docs]', then kopt docs build"
        )
    return ", ".join(EXTRA)


def _is_installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _pinecone(settings: Settings) -> str:
    if settings.pinecone_api_key is None:
        raise SetupError("PINECONE_API_KEY is not set: searches ask nothing but this machine")
    return f"PINECONE_API_KEY is set; searches ask the index {settings.pinecone_index_name} too"


def _claude(settings: Settings) -> str:
    if settings.claude is None:
        raise SetupError(
            "ANTHROPIC_API_KEY is not set: kopt run asks no model; it writes kernels of its own for"
            " functions that it knows, and sweeps tune values"
        )
    name = "ANTHROPIC_API_KEY" if settings.claude.api_key else "ANTHROPIC_AUTH_TOKEN"
    return f"{name} is set: kopt run has Claude write kernels"


def _client(provider: Provider) -> str:
    client = find_client(provider)
    require_login(client)
    version = client.version or "of no known version"
    return f"{client.program}, {version}, is logged in: kopt run --provider {provider} asks it"


def _prices(settings: Settings) -> str:
    table = load_prices(settings.home)
    dates = sorted({price.dated for price in table.models.values()})
    seen = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    return f"of {len(table.models)} models, seen {seen}; your own go to {table.own_file}"
