"""Settings of one process: where state lies and how much work runs at once.

All environment variables that kopt reads are read here, and nowhere else. The command line
resolves `Settings` once and passes it down.
"""

import os
import platform
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from .errors import ToolError
from .passed_environment import NOT_FOR_CLIENTS, SERVER_VARIABLES, library_environment, looks_secret

DEFAULT_BASE_URL = "https://api.anthropic.com"


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


@dataclass(frozen=True)
class ClientFolders:
    """Where MCP clients keep their settings: the home folder and what moves a part of it."""

    home: Path
    """The user's home folder."""
    config: Path
    """XDG_CONFIG_HOME, default ~/.config."""
    applications: Path
    """Where desktop applications keep theirs: as `config`, but on a Mac."""
    claude: Path | None = None
    """CLAUDE_CONFIG_DIR: Claude Code's folder, if moved."""
    codex: Path | None = None
    """CODEX_HOME: Codex's folder, if moved."""
    gemini: Path | None = None
    """GEMINI_CLI_HOME: what Gemini CLI takes for the home folder, if moved."""


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
        home=_absolute(home) if home else _user_home(environment) / ".kopt",
        problems=_optional_path(environment.get("KOPT_PROBLEMS")),
        nvcc=_optional_path(environment.get("KOPT_NVCC")),
        cuda_home=_optional_path(cuda_home),
        ncu=_optional_path(environment.get("KOPT_NCU")),
        gxx=environment.get("KOPT_CXX", "g++"),
        jobs=int(jobs_text) if jobs_text else len(os.sched_getaffinity(0)),
        sandbox=sandbox,
        without_sources=_names(environment.get("KOPT_WITHOUT_SOURCES", "")),
        retrieval_run=environment.get("KOPT_RUN") or None,
        package_index=_package_index(environment),
        library_environment=library_environment(environment),
        pinecone_api_key=_printable("PINECONE_API_KEY", environment),
        pinecone_index_name=_printable("PINECONE_INDEX_NAME", environment)
        or DEFAULT_PINECONE_INDEX,
        pinecone_index_host=_printable("PINECONE_INDEX_HOST", environment),
        claude=_claude_access(environment),
    )


def completion_request(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return what a shell asks that completes a command line, such as `bash_complete`."""
    return environment.get(COMPLETION_VARIABLE)


def color_is_refused(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether NO_COLOR is set (no-color.org): then text has no style at all."""
    return bool(environment.get("NO_COLOR"))


def visible_devices(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return CUDA_VISIBLE_DEVICES, which CUDA itself obeys: to say why a GPU is not there."""
    return environment.get("CUDA_VISIBLE_DEVICES")


def without_secrets(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for kopt's own child processes: nothing that looks like a secret.

    Judged by the name; a value that looks like a token, or carries a password in an address, is
    left out too.
    """
    return {name: value for name, value in environment.items() if not looks_secret(name, value)}


def client_environment(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment for a coding agent that answers in a model's place: without keys."""
    return {name: value for name, value in environment.items() if name not in NOT_FOR_CLIENTS}


def server_variables(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return those variables that kopt reads and that are set, for clients that pass none on."""
    return {name: environment[name] for name in SERVER_VARIABLES if environment.get(name)}


def client_folders(environment: Mapping[str, str] = os.environ) -> ClientFolders:
    """Return where the clients of this user keep their settings."""
    home = Path.home()
    config = _optional_path(environment.get("XDG_CONFIG_HOME")) or home / ".config"
    is_mac = platform.system() == "Darwin"
    return ClientFolders(
        home=home,
        config=config,
        applications=home / "Library" / "Application Support" if is_mac else config,
        claude=_optional_path(environment.get("CLAUDE_CONFIG_DIR")),
        codex=_optional_path(environment.get("CODEX_HOME")),
        gemini=_optional_path(environment.get("GEMINI_CLI_HOME")),
    )


def project_folder(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return CLAUDE_PROJECT_DIR: the project for which Claude Code starts a server."""
    return _optional_path(environment.get("CLAUDE_PROJECT_DIR"))


def _absolute(text: str) -> Path:
    """Return a path that means the same in every process: workers have another working folder."""
    return Path(text).expanduser().absolute()


def _user_home(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder; an empty HOME is none.

    Raises:
        ToolError: There is neither HOME nor an entry of the user in the password database.
    """
    if home := environment.get("HOME"):
        return Path(home)
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        raise ToolError("this user has no home folder: set HOME or KOPT_HOME") from None


def _package_index(environment: Mapping[str, str]) -> str:
    set_ones = (environment.get(name) for name in _PACKAGE_INDEX_VARIABLES)
    return next((index for index in set_ones if index), DEFAULT_PACKAGE_INDEX)


def _claude_access(environment: Mapping[str, str]) -> ClaudeAccess | None:
    """Return the key, or else the token: the service takes one of them."""
    key = _printable("ANTHROPIC_API_KEY", environment)
    token = None if key else _printable("ANTHROPIC_AUTH_TOKEN", environment)
    if not (key or token):
        return None
    base_url = _printable("ANTHROPIC_BASE_URL", environment) or DEFAULT_BASE_URL
    return ClaudeAccess(key, token, base_url)


def _names(text: str) -> tuple[str, ...]:
    """Return the parts of a list with commas, each once."""
    return tuple(dict.fromkeys(name for part in text.split(",") if (name := part.strip())))


def _printable(name: str, environment: Mapping[str, str]) -> str | None:
    """Return a variable that becomes part of a request, without blanks around it.

    Raises:
        ToolError: It has what no header or address can carry; the value is not shown.
    """
    text = environment.get(name, "").strip()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ToolError(
            f"{name} has characters that do not belong there: blanks, controls, accents"
        )
    return text or None


def _optional_path(text: str | None) -> Path | None:
    return _absolute(text) if text else None
