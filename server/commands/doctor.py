"""`kopt doctor`: what this machine has of all that kopt uses, and how to get what is missing."""

import platform
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click

from kopt import __version__
from kopt.config.errors import KoptError, SetupError
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.server.console import print_document, print_view
from kopt.server.docs_findings import docs_findings
from kopt.server.exits import ExitCode
from kopt.server.gpu_findings import gpu_findings
from kopt.server.model_findings import model_findings
from kopt.server.session import Session, command_body
from kopt.server.views.doctor_view import Finding, doctor_view
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.sandbox.ladder import available_level

EPILOG = """\b
Examples:
  kopt doctor
  kopt doctor --json

\b
Lines with "-" are optional; their text says how to get them. No GPU is needed.
Exit codes: 0 all that is needed is here, 3 something is missing."""


NEEDED_MB = 200
"""The simulator's parts, some hundred binaries and a few runs."""


@dataclass(frozen=True)
class DoctorOptions:
    """Nothing beyond what every command takes."""


@click.command("doctor", epilog=EPILOG)
@command_body(DoctorOptions)
def command(session: Session, options: DoctorOptions) -> int:
    """Show what this machine has of all that kopt uses, and how to get what is missing.

    Compilers, sandbox, disk and problems; what documents are searched by; whether there is a key
    for Claude, and the prices of models; GPUs with their drivers and locks, the libraries of the
    baselines, the profiler and whether it may read counters.
    """
    settings = session.settings
    findings = [
        _require("Python", lambda: f"{platform.python_version()}, kopt {__version__}"),
        _require("platform", _platform),
        _require("host compiler", lambda: _host_compiler(settings)),
        _require("CUDA compiler", lambda: _cuda_compiler(settings)),
        _require("sandbox", lambda: _sandbox(settings)),
        _require("state folder", lambda: _state_folder(settings)),
        _require("problems", lambda: _problems(settings)),
        _require("processor", lambda: f"{settings.jobs} processes at once (KOPT_JOBS)"),
        *docs_findings(settings),
        *model_findings(settings),
        *gpu_findings(settings),
    ]
    lacks = any(finding.is_required and not finding.is_present for finding in findings)
    if session.as_json:
        print_document(
            {
                "schema": "kopt.doctor/1",
                "status": "error" if lacks else "passed",
                "findings": [asdict(finding) for finding in findings],
            }
        )
    else:
        print_view(doctor_view(findings))
    return ExitCode.MACHINE if lacks else ExitCode.PASSED


def _require(name: str, find: Callable[[], str]) -> Finding:
    """Return what `find` finds, or the KoptError that says what is missing."""
    try:
        return Finding(name, True, True, find())
    except KoptError as error:
        return Finding(name, False, True, str(error))


def _state_folder(settings: Settings) -> str:
    free_mb = shutil.disk_usage(ensure_folder(settings.home)).free // 1_000_000
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
