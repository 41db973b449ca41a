"""Which environment variables other processes get to see, and what tells a secret among them."""

import re
from collections.abc import Mapping

_SECRET_WORDS = (
    *("TOKEN", "KEY", "SECRET", "PASSW", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE"),
    "_HEADERS",  # of requests, as several clients of services take them: where they carry keys
)
_PERSONAL_TOKEN = re.compile(r"(?<![A-Z])PATS?(?![A-Z])")
"""In an upper-case name: PAT as a word of its own, which PATH and PATTERN are not."""
_SECRET_VALUE = re.compile(
    r"://[^/\s@]+@"  # a password in an address, or a token as its user
    r"|\b(gh[opusr]_|github_pat_|glpat-|hf_|npm_|pypi-|sk-|xox[abeprs]-|nvapi-|pcsk_|AIza)[\w-]{16,}"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"  # a JSON web token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
"""What well-known issuers give out, by the beginnings that they document."""


NOT_FOR_CLIENTS = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"),
    "PINECONE_API_KEY",
    *("CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT"),
    *("CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SSE_PORT"),
)
"""Kept from a coding agent that answers in a model's place: keys, which it would have billed in
place of its own login, and what tells it that it runs inside another one of its kind."""
SERVER_VARIABLES = (
    *("CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES"),
    *("KOPT_CXX", "KOPT_HOME", "KOPT_JOBS", "KOPT_NCU", "KOPT_NVCC", "KOPT_PROBLEMS", "KOPT_RUN"),
    *(
        "KOPT_DEVICE_TOKEN_FILE",
        "KOPT_GPU_IDLE_S",
        "KOPT_REMOTE_PYTHON",
        "KOPT_SANDBOX",
        "KOPT_WITHOUT_SOURCES",
    ),
    *("PINECONE_INDEX_HOST", "PINECONE_INDEX_NAME"),
)


def looks_secret(name: str, value: str) -> bool:
    """Say whether a variable of this name and value may give access to something."""
    upper = name.upper()
    return (
        any(word in upper for word in _SECRET_WORDS)
        or _PERSONAL_TOKEN.search(upper) is not None
        or _SECRET_VALUE.search(value) is not None
    )


def without_tokens(text: str) -> str:
    """Return `text` with what looks like a token or a password in an address left out."""
    return _SECRET_VALUE.sub("[key]", text)


LIBRARY_VARIABLES = (
    "CC",
    "CPATH",
    "CUDAHOSTCXX",
    "CXX",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "MAX_JOBS",
    "NVCC_APPEND_FLAGS",
    "NVCC_PREPEND_FLAGS",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_TF32_OVERRIDE",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "PATH",
    "TORCH_CUDA_ARCH_LIST",
)
LIBRARY_PREFIXES = ("CUDA_", "CUTE_DSL_", "FLASHINFER_")
_FOLDER_WORDS = ("CACHE", "DUMP")


def library_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what libraries may see of `environment`: no secret and no folder to write."""
    return tuple(
        (name, value)
        for name, value in sorted(environment.items())
        if (name in LIBRARY_VARIABLES or name.startswith(LIBRARY_PREFIXES))
        and not any(word in name for word in _FOLDER_WORDS)
        and not looks_secret(name, value)
    )
