"""Settings of one process: where state lies and how much work runs at once.

All environment variables that kopt reads are read here, and nowhere else. The command line
resolves `Settings` once and passes it down.
"""

import os
import platform
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from .client_folders import ClientFolders
from .environment_values import absolute, names, optional_path, printable, seconds, user_home
from .errors import ToolError
from .passed_environment import NOT_FOR_CLIENTS, SERVER_VARIABLES, library_environment, looks_secret

DEFAULT_BASE_URL = "https://api.anthropic.com"
_WITHOUT_PLUGINS = ("PYDANTIC_DISABLE_PLUGINS", "__all__")
RESIDENT_IDLE_S = 600.0
"""How long a resident evaluator stays without a caller unless somebody says otherwise."""


@dataclass(frozen=True)
class ClaudeAccess:
    """What a request carries; exactly one of key and token is set."""

    api_key: str | None = field(default=None, repr=False)
    """ANTHROPIC_API_KEY."""
    auth_token: str | None = field(default=None, repr=False)
    """ANTHROPIC_AUTH_TOKEN, where there is no key."""
    base_url: str = field(default=DEFAULT_BASE_URL, repr=False)
    """ANTHROPIC_BASE_URL: a gateway, or a stand-in. It may hold a password."""


COMPLETION_VARIABLE = "_KOPT_COMPLETE"
"""Set by the script of `kopt completion` when it asks what fits."""
DEFAULT_ARCH = "sm_100a"
WORKSPACE_PROBLEMS = "kopt_problems"
"""The folder of problems in a workspace that a server reads unasked: it may be missing or empty."""
DEFAULT_PACKAGE_INDEX = "https://pypi.org/simple"
_PACKAGE_INDEX_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
DEFAULT_PINECONE_INDEX = "cuda-kernels-v2"


class _HomeFolder:
    """A folder below KOPT_HOME, as an attribute of `Settings`."""

    def __init__(self, *parts: str) -> None:
        self._path = Path(*parts)

    def __get__(self, settings: "Settings", owner: object) -> Path:
        return settings.home / self._path


@dataclass(frozen=True)
class Settings:
    """Everything that the environment decides."""

    home: Path
    """KOPT_HOME, default ~/.kopt: runs, store, caches."""
    problems: Path | None = None
    """KOPT_PROBLEMS: a folder of the user's own problems, beside the packaged ones."""
    nvcc: Path | None = None
    """KOPT_NVCC: this nvcc and no other."""
    cuda_home: Path | None = None
    """CUDA_HOME (or CUDA_PATH): a system toolkit."""
    ncu: Path | None = None
    """KOPT_NCU: this Nsight Compute and no other."""
    gxx: str = "g++"
    """KOPT_CXX: the host compiler of the simulator and of nvcc."""
    jobs: int = 1
    """KOPT_JOBS: processes at once, default the number of usable cores."""
    sandbox: str = "auto"
    """KOPT_SANDBOX: auto, bubblewrap, landlock or plain; anything but auto must be available."""
    gpu_idle_s: float = 0.0
    """KOPT_GPU_IDLE_S, default 600: how long a GPU's resident evaluator stays without a caller; 0:
    calls start none, and use one only if `kopt gpu start` has."""
    remote_python: str | None = None
    """KOPT_REMOTE_PYTHON: the Python on the machine of a device `ssh://...`; None: venv/bin/python
    in kopt's folder there, else python3."""
    device_token_file: Path | None = None
    """KOPT_DEVICE_TOKEN_FILE: the file with the token for devices `https://...`."""
    ssh_agent: str | None = field(default=None, repr=False)
    """SSH_AUTH_SOCK: where ssh finds the agent that holds the user's keys."""
    without_sources: tuple[str, ...] = ()
    """KOPT_WITHOUT_SOURCES: sources that no search and no reading of documents may see, as in a
    study whose agents must not find earlier winners."""
    retrieval_run: str | None = None
    """KOPT_RUN: the run that searches and readings of documents are logged with, if they name none
    themselves; None logs none of them."""
    package_index: str = field(default=DEFAULT_PACKAGE_INDEX, repr=False)
    """PIP_INDEX_URL, UV_DEFAULT_INDEX or UV_INDEX_URL: the index that pinned packages come from. It
    may hold a password."""
    library_environment: tuple[tuple[str, str], ...] = ()
    """What CUDA, torch and FlashInfer look at, for the processes that use them
    (`passed_environment.py`)."""
    pinecone_api_key: str | None = field(default=None, repr=False)
    """PINECONE_API_KEY: asks Pinecone beside the index of this machine; without it Pinecone is not
    asked. Shown nowhere, and no other process is given it: see `without_keys`."""
    pinecone_index_name: str = DEFAULT_PINECONE_INDEX
    """PINECONE_INDEX_NAME: the Pinecone index to ask."""
    pinecone_index_host: str | None = None
    """PINECONE_INDEX_HOST: where that index answers, so that its address need not be asked for."""
    knowledge_folder: Path | None = None
    """Another folder of the knowledge base than KOPT_HOME's, for studies; no variable names it."""
    claude: ClaudeAccess | None = None
    """ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, with ANTHROPIC_BASE_URL: `kopt run` asks Claude.
    Without it no model is asked. No other process is given it: see `without_keys`."""

    def without_keys(self) -> Self:
        """Return these settings for another process: nothing that gives access to a service."""
        return replace(
            self, pinecone_api_key=None, claude=None, package_index=DEFAULT_PACKAGE_INDEX
        )

    cubin_cache = _HomeFolder("cache", "cubin")
    """Folder of the compile cache."""
    oracle_cache = _HomeFolder("cache", "oracle")
    """Folder of cached inputs and oracle outputs."""
    sim_cache = _HomeFolder("cache", "sim")
    """Folder of the simulator's compiled runtime and of candidates' CPU objects."""
    docs_cache = _HomeFolder("cache", "docs")
    """Folder of the indexes that documents are searched by."""
    durations = _HomeFolder("cache", "durations")
    """Folder of what kinds of work took the last time, by which their time left is told."""
    references = _HomeFolder("cache", "references")
    """Folder of the problems that `kopt review --reference` has made, one folder each."""
    library_cache = _HomeFolder("cache", "libraries")
    """Folder of what libraries build for themselves: FlashInfer's kernels and the like."""
    reports = _HomeFolder("reports")
    """Folder of what profilers and sanitizers wrote, by kernel and candidate."""
    reviews = _HomeFolder("reviews")
    """Folder of the pages of reviews."""
    winners = _HomeFolder("winners")
    """Folder of promoted winners, one folder a problem."""
    jobs_folder = _HomeFolder("jobs")
    """Folder of the jobs of tool calls, one folder a job."""
    runs = _HomeFolder("runs")
    """Folder of the run stores."""

    @property
    def knowledge(self) -> Path:
        """Folder of the knowledge base that runs learn into and are advised by."""
        return self.knowledge_folder or self.home / "knowledge"

    studies = _HomeFolder("studies")
    """Folder of the studies, one folder a study."""


def settings_from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings that the environment asks for.

    Raises:
        ToolError: A variable has a value that cannot be used; the message names it.
    """
    jobs_text = environment.get("KOPT_JOBS", "")
    if jobs_text and not (jobs_text.isdigit() and int(jobs_text) > 0):
        raise ToolError(f"KOPT_JOBS is {jobs_text!r}; it must be a positive whole number")
    sandbox = environment.get("KOPT_SANDBOX", "auto")
    if sandbox not in ("auto", "bubblewrap", "landlock", "plain"):
        raise ToolError(f"KOPT_SANDBOX is {sandbox!r}; allowed: auto, bubblewrap, landlock, plain")
    cuda_home = environment.get("CUDA_HOME") or environment.get("CUDA_PATH")
    home = environment.get("KOPT_HOME")
    return Settings(
        home=absolute(home) if home else user_home(environment) / ".kopt",
        problems=optional_path(environment.get("KOPT_PROBLEMS")),
        nvcc=optional_path(environment.get("KOPT_NVCC")),
        cuda_home=optional_path(cuda_home),
        ncu=optional_path(environment.get("KOPT_NCU")),
        gxx=environment.get("KOPT_CXX", "g++"),
        jobs=int(jobs_text) if jobs_text else len(os.sched_getaffinity(0)),
        sandbox=sandbox,
        without_sources=names(environment.get("KOPT_WITHOUT_SOURCES", "")),
        gpu_idle_s=seconds("KOPT_GPU_IDLE_S", environment, RESIDENT_IDLE_S),
        remote_python=environment.get("KOPT_REMOTE_PYTHON") or None,
        device_token_file=optional_path(environment.get("KOPT_DEVICE_TOKEN_FILE")),
        ssh_agent=environment.get("SSH_AUTH_SOCK") or None,
        retrieval_run=environment.get("KOPT_RUN") or None,
        package_index=_package_index(environment),
        library_environment=library_environment(environment),
        pinecone_api_key=printable("PINECONE_API_KEY", environment),
        pinecone_index_name=printable("PINECONE_INDEX_NAME", environment) or DEFAULT_PINECONE_INDEX,
        pinecone_index_host=printable("PINECONE_INDEX_HOST", environment),
        claude=_claude_access(environment),
    )


def completion_request(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return what a shell asks that completes a command line, such as `bash_complete`."""
    return environment.get(COMPLETION_VARIABLE)


def leave_out_pydantic_plugins(environment: MutableMapping[str, str] = os.environ) -> None:
    """Keep pydantic, before its first class, from searching all distributions for plugins of it.

    kopt has none, and the search takes longer the more is installed; a user's own word stays.
    """
    environment.setdefault(*_WITHOUT_PLUGINS)


def color_is_refused(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether NO_COLOR is set (no-color.org): then text has no style at all."""
    return bool(environment.get("NO_COLOR"))


def visible_devices(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return CUDA_VISIBLE_DEVICES, which CUDA itself obeys: to say why a GPU is not there."""
    return environment.get("CUDA_VISIBLE_DEVICES")


def python_path(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return PYTHONPATH, by which another Python finds other modules."""
    return environment.get("PYTHONPATH")


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for kopt's own child processes: nothing that looks like a secret.

    Judged by the name; a value that looks like a token, or carries a password in an address, is
    left out too.
    """
    return {name: value for name, value in environment.items() if not looks_secret(name, value)}


def all_variables() -> Mapping[str, str]:
    """Return the environment of this process, for what knows itself which of it to look at."""
    return os.environ


def client_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a coding agent that answers in a model's place: without keys.

    What kopt has set for its own pydantic is left out, too.
    """
    return {
        name: value
        for name, value in environment.items()
        if name not in NOT_FOR_CLIENTS and (name, value) != _WITHOUT_PLUGINS
    }


def server_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return those variables that kopt reads and that are set, for clients that pass none on."""
    return {name: environment[name] for name in SERVER_VARIABLES if environment.get(name)}


def client_folders(environment: Mapping[str, str] = os.environ) -> ClientFolders:
    """Return where the clients of this user keep their settings."""
    home = Path.home()
    config = optional_path(environment.get("XDG_CONFIG_HOME")) or home / ".config"
    is_mac = platform.system() == "Darwin"
    return ClientFolders(
        home=home,
        config=config,
        applications=home / "Library" / "Application Support" if is_mac else config,
        claude=optional_path(environment.get("CLAUDE_CONFIG_DIR")),
        codex=optional_path(environment.get("CODEX_HOME")),
        gemini=optional_path(environment.get("GEMINI_CLI_HOME")),
    )


def project_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return CLAUDE_PROJECT_DIR: the project for which Claude Code starts a server."""
    return optional_path(environment.get("CLAUDE_PROJECT_DIR"))


def _package_index(environment: Mapping[str, str]) -> str:
    set_ones = (environment.get(name) for name in _PACKAGE_INDEX_VARIABLES)
    return next((index for index in set_ones if index), DEFAULT_PACKAGE_INDEX)


def _claude_access(environment: Mapping[str, str]) -> ClaudeAccess | None:
    """Return the key, or else the token: the service takes one of them."""
    key = printable("ANTHROPIC_API_KEY", environment)
    token = None if key else printable("ANTHROPIC_AUTH_TOKEN", environment)
    if not (key or token):
        return None
    base_url = printable("ANTHROPIC_BASE_URL", environment) or DEFAULT_BASE_URL
    return ClaudeAccess(key, token, base_url)
