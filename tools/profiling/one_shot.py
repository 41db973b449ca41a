"""Runs a candidate's plan once under a tool that looks into the GPU, and keeps what the tool wrote.

The child (`worker/one_shot.py`) and the tool run together in the sandbox. The tool talks to the
CUDA library inside the child through a Unix socket, which the policy allows here and nowhere else.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import ensure_folder
from kopt.config.scratch_folder import scratch_folder
from kopt.config.settings import Settings
from kopt.tools.devices.examination import ExaminedCall
from kopt.tools.gpu.array_file import write_arrays
from kopt.tools.gpu.one_shot_files import (
    CUBIN_FILE,
    INPUTS_FILE,
    REQUEST_FILE,
    OneShotAnswer,
    OneShotRequest,
    read_answer,
)
from kopt.tools.gpu.worker_policy import WorkerSpec, worker_policy
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy

from .launchable import Launchable, timing_inputs
from .nvidia_tools import NvidiaTool

_MODULE = "kopt.tools.gpu.worker.one_shot"
_OUTPUT_BYTES = 1 << 20


@dataclass(frozen=True)
class OneShot:
    """What is run, and where."""

    call: ExaminedCall
    device_uuid: str


@dataclass(frozen=True)
class Examination:
    """A tool with its options and the files that it writes."""

    tool: NvidiaTool
    arguments: Callable[[Path], list[str]]
    """Its options, given the folder that it may write to."""
    outputs: tuple[str, ...]
    """Names of the files that it writes there."""
    keep_in: Path
    """Folder where these are kept, together with what it printed, as `<prefix><name>`."""
    prefix: str
    wall_s: float


@dataclass(frozen=True)
class Examined:
    """Outcome of one run of a tool."""

    run: SandboxedRun
    answer: OneShotAnswer | None
    """Answer of the child; None if it did not get as far as its buffers."""
    printed: str
    """stdout and stderr of the tool and the child."""
    printed_path: Path
    files: dict[str, Path]
    """Kept files by their names; those that were not written are missing."""


def examine(shot: OneShot, examination: Examination, settings: Settings) -> Examined:
    """Run `shot` under the tool.

    The caller holds the GPU: a tool disturbs whatever runs beside it.

    Raises:
        SetupError: The sandbox cannot start here, or KOPT_HOME cannot be written.
        InfraError: The sandbox was killed from outside.
    """
    settings = _profiling_settings(settings)
    input_bytes = sum(array.nbytes for array in shot.call.inputs.values())
    with scratch_folder("one-shot", input_bytes + (64 << 20)) as folder:
        _write_request(shot, folder)
        command: list[str | Path] = [
            examination.tool.path,
            *examination.arguments(folder),
            os.path.abspath(sys.executable),
            "-P",
            "-m",
            _MODULE,
            folder,
        ]
        run = run_sandboxed(command, _policy(examination, folder, settings), settings)
        return _keep(run, folder, examination)


def examined_call(launchable: Launchable, cubin: bytes) -> ExaminedCall:
    """Return a call of `launchable` on its timing inputs, by `cubin`."""
    case = launchable.case
    return ExaminedCall(case.problem, case.workload, launchable.plan, cubin, timing_inputs(case))


def report_folder(launchable: Launchable, settings: Settings) -> Path:
    """Return where reports on a candidate are kept; later ones replace earlier ones.

    Raises:
        SetupError: KOPT_HOME cannot be written.
    """
    case, defines = launchable.case, launchable.defines
    name = f"{case.candidate.id[:12]}{'-' if defines else ''}{defines}"
    return ensure_folder(settings.reports.absolute() / case.kernel_id / name)


def _write_request(shot: OneShot, folder: Path) -> None:
    call = shot.call
    request = OneShotRequest(
        device_uuid=shot.device_uuid,
        problem=call.problem,
        workload=call.workload,
        plan=call.plan,
        inputs=write_arrays(folder, INPUTS_FILE, call.inputs.items()),
    )
    (folder / CUBIN_FILE).write_bytes(call.cubin)
    (folder / REQUEST_FILE).write_text(request.model_dump_json(), "utf-8")


def _profiling_settings(settings: Settings) -> Settings:
    """Return settings whose sandbox level lets CUDA start in a child of the tool.

    CUDA writes to its process's own entries in /proc, which Landlock can allow only for processes
    that exist when the rules are made. All host code is kopt's and NVIDIA's here, so that the next
    level does; results name it.
    """
    if settings.sandbox == "auto" and available_level(settings) == "landlock":
        return replace(settings, sandbox="plain")
    return settings


def _policy(examination: Examination, folder: Path, settings: Settings) -> SandboxPolicy:
    spec = WorkerSpec(engine="", readable=(examination.tool.root,))
    policy = worker_policy(spec, folder, settings)
    # The tools keep settings and sections in HOME: a fresh one, so that no earlier run decides.
    hidden = ("HOME", "FLASHINFER_WORKSPACE_BASE")
    environment = {key: text for key, text in policy.environment.items() if key not in hidden}
    return replace(
        policy,
        writable=(folder,),
        environment=environment,
        wall_s=examination.wall_s,
        output_bytes=_OUTPUT_BYTES,
        unix_sockets=True,
    )


def _keep(run: SandboxedRun, folder: Path, examination: Examination) -> Examined:
    printed = (run.stdout + run.stderr).decode(errors="replace")
    printed_path = examination.keep_in / f"{examination.prefix}output.txt"
    files: dict[str, Path] = {}
    try:
        printed_path.write_text(printed, "utf-8")
        for name in examination.outputs:
            target = examination.keep_in / f"{examination.prefix}{name}"
            target.unlink(missing_ok=True)  # an earlier report is not this run's
            if (folder / name).is_file():
                shutil.copyfile(folder / name, target)
                files[name] = target
    except OSError as error:
        raise SetupError(f"cannot write to {examination.keep_in}: {error.strerror}") from error
    return Examined(run, read_answer(folder), printed, printed_path, files)
