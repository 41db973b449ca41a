"""The system's ssh as a child process: its command, and what its refusals mean.

It is the user's own ssh, so that ~/.ssh/config, agents, jump hosts and ControlMaster count. It asks
nothing: what would need a password or a yes is a refusal that says what to do.
"""

import base64
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from importlib.resources import files

from kopt.config.errors import SetupError
from kopt.config.remote_address import RemoteAddress
from kopt.config.settings import Settings, without_secrets

CONNECT_S = 15
"""Longest wait for the other machine to take a connection."""
ALIVE_S, ALIVE_COUNT = 15, 3
"""ssh gives a connection up after this many unanswered questions, so many seconds apart."""
_OPTIONS = (
    *("-T", "-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}"),
    # Whatever ~/.ssh/config says: where candidates run nothing of this machine can be reached.
    *("-a", "-x", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none"),
    *("-o", f"ServerAliveInterval={ALIVE_S}", "-o", f"ServerAliveCountMax={ALIVE_COUNT}"),
)
# Any login shell passes it on to sh: in single quotes, without one inside, no shell changes it.
_SCRIPT = (
    "h=${KOPT_HOME:-$HOME/.cache/kopt}; p=$3; "
    '[ -n "$p" ] || p=$h/venv/bin/python; '
    '[ -n "$3" ] || [ -x "$p" ] || p=python3; '
    'command -v "$p" >/dev/null 2>&1 || { echo "kopt: no $p" >&2; exit 127; }; '
    # The current folder, which is the home folder, is no place to import from.
    'exec "$p" -c "import sys; sys.path[:] = filter(None, sys.path); '
    'import base64; exec(base64.b64decode(sys.argv[1]))"'
    ' "$1" "$h" "$2" "$4"'
)
_BASE_PACKAGES = {
    "numpy": "numpy",
    "pydantic": "pydantic",
    "yaml": "pyyaml",
    "ml_dtypes": "ml_dtypes",
    "elftools": "pyelftools",
}
BASE_MODULES = frozenset(_BASE_PACKAGES)
"""Without these nothing of kopt runs there."""
_GPU_PACKAGES = {"cuda.bindings": "cuda-bindings==13.*", "pynvml": "nvidia-ml-py>=13"}
_SIM_HEADERS = (
    "nvidia-cuda-cccl==13.2.*",
    "nvidia-cuda-crt==13.2.*",
    "nvidia-cuda-runtime==13.2.*",
)
"""What the simulator compiles with; the distributions have no module of their own to look for."""


@dataclass(frozen=True)
class FarPython:
    """What `bootstrap.py` says of the other machine before it is given anything."""

    version: str
    executable: str
    is_new_enough: bool
    lacking: tuple[str, ...]
    """Modules of `needed_modules` that are not installed."""
    has_code: bool
    """Whether the code of this version is there already."""
    home: str
    """Folder of kopt there: KOPT_HOME, default ~/.cache/kopt."""


def needed_modules(device: str) -> dict[str, str]:
    """Return the Python modules that a device needs there, with the distribution of each."""
    return _BASE_PACKAGES | ({} if device == "sim" else _GPU_PACKAGES)


def start_ssh(address: RemoteAddress, digest: str, settings: Settings) -> subprocess.Popen[bytes]:
    """Start ssh with a command that brings kopt's code up there (`bootstrap.py`).

    Raises:
        SetupError: There is no ssh here.
    """
    program = shutil.which("ssh")
    if program is None:
        raise SetupError(
            f"{address} needs ssh, and there is none on PATH: apt install openssh-client"
        )
    text = files("kopt.tools.remote").joinpath("bootstrap.py").read_bytes()
    # Left out with the secrets, for its name.
    agent = {} if settings.ssh_agent is None else {"SSH_AUTH_SOCK": settings.ssh_agent}
    words = (
        *("sh", "-c", _SCRIPT, "kopt"),
        base64.b64encode(text).decode(),
        digest,
        settings.remote_python or "",
        ",".join(needed_modules(address.device)),
    )
    return subprocess.Popen(
        [program, *_OPTIONS, *address.ssh_words, f"exec {shlex.join(words)}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=without_secrets() | agent,
        process_group=0,  # Ctrl-C is kopt's, which closes the connection in order
    )


def install_command(address: RemoteAddress, python: FarPython, settings: Settings) -> str:
    """Return the command, to be run here, that installs there what the device needs."""
    sim = _SIM_HEADERS if address.device == "sim" else ()
    wanted = (*needed_modules(address.device).values(), *sim)
    packages = " ".join(f'"{one}"' if "=" in one else one for one in wanted)
    venv = f"{python.home}/venv"
    if settings.remote_python is not None or python.executable.startswith(f"{venv}/"):
        there = f"{shlex.quote(python.executable)} -m pip install {packages}"
    else:
        folder = shlex.quote(venv)
        there = f"python3 -m venv {folder} && {folder}/bin/python -m pip install {packages}"
    # In quotes for both shells: what is pasted here runs nothing that the other machine names.
    return f"{address.by_hand} {shlex.quote(there)}"


def too_old(python: FarPython) -> str:
    """Return what to do about a Python that cannot run kopt."""
    return (
        f"Python {python.version} ({python.executable}) is too old there, kopt needs 3.11: install"
        " one, and name it with KOPT_REMOTE_PYTHON=/path/to/python3"
    )


def why_refused(address: RemoteAddress, said: str, code: int | None) -> str:
    """Return why ssh got nowhere, in one line that says what to do.

    Args:
        address: The other machine.
        said: What ssh wrote to stderr.
        code: Its exit status; None if it has not ended.
    """
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1][:300] if lines else f"ssh ended with status {code}"
    hand, machine = address.by_hand, address.machine
    for sign, advice in _ADVICE:
        if sign in said:
            return advice.format(machine=machine, hand=hand, host=address.host, said=last)
    return f"{machine} cannot be used over ssh: {last}; does `{hand} true` work?"


_ADVICE = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "the host key of {machine} is not the one that ssh knows: if the machine was set up anew,"
        " `ssh-keygen -R {host}` and connect once by hand with `{hand}`; else somebody may be in"
        " between",
    ),
    (
        "Host key verification failed",
        "{machine} is not known to ssh yet: connect once by hand with `{hand}`, compare the"
        " fingerprint and say yes",
    ),
    (
        "Permission denied",
        "{machine} refuses the key: `{hand} true` must work without a password; ssh-copy-id brings"
        " your key there, ssh-add unlocks it ({said})",
    ),
    (
        "Too many authentication failures",
        "{machine} refuses all keys: name the right one in ~/.ssh/config (IdentityFile, "
        "IdentitiesOnly yes) until `{hand} true` works ({said})",
    ),
    (
        "Could not resolve hostname",
        "there is no host {host}: correct the name, or add it to ~/.ssh/config ({said})",
    ),
    (
        "Connection refused",
        "nothing listens for ssh at {machine}: is sshd running there, and is the port right?"
        " ({said})",
    ),
    (
        "timed out",
        "{machine} does not answer: is it on, and can it be reached from here? ({said})",
    ),
    ("No route to host", "{machine} cannot be reached from here ({said})"),
    ("kopt: no python3", "there is no python3 at {machine}: `{hand}` and apt install python3"),
    (
        "kopt: no ",
        "there is no such Python at {machine}: KOPT_REMOTE_PYTHON names it ({said})",
    ),
)
"""Failures are told apart by what ssh, or the script there, writes: the first that fits counts."""
