"""Reads a report of Nsight Compute in a sandboxed process of its own, which this module also is.

The library that reads reports is native code: beside PyTorch's libraries in one process it can end
with a segmentation fault, and the report comes from a process that ran a candidate.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from kopt.config.scratch_folder import scratch_folder
from kopt.config.settings import Settings
from kopt.kernels.counters import LaunchCounters
from kopt.kernels.record import Record
from kopt.tools.gpu.worker_policy import WorkerSpec, worker_policy
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun

from .ncu_report import ReportError, read_report

_LIMIT_S = 120.0
_SCRATCH_BYTES = 1 << 20
_OUTPUT_BYTES = 16 << 20


class _Answer(Record):
    """What the process prints."""

    launches: tuple[LaunchCounters, ...] = ()
    error: str | None = None


def read_report_apart(path: Path, settings: Settings) -> tuple[LaunchCounters, ...]:
    """Return the counters of every launch in a .ncu-rep file, in the order profiled.

    Raises:
        ReportError: As of `read_report`, and where the process that reads crashes or hangs.
        SetupError: The sandbox cannot start here, or KOPT_HOME cannot be written.
    """
    report = path.absolute()
    command: list[str | Path] = [os.path.abspath(sys.executable), "-P", "-m", __name__, report]
    with scratch_folder("ncu-report", _SCRATCH_BYTES) as folder:
        policy = worker_policy(WorkerSpec(engine="", readable=(report,)), folder, settings)
        alone = replace(policy, devices=(), wall_s=_LIMIT_S, output_bytes=_OUTPUT_BYTES)
        run = run_sandboxed(command, alone, settings)
    try:
        answer = _Answer.model_validate_json(run.stdout)
    except ValidationError as error:
        raise ReportError(f"ncu-report cannot read {path}: {_ending(run)}") from error
    if answer.error is not None:
        raise ReportError(answer.error)
    return answer.launches


def _ending(run: SandboxedRun) -> str:
    if run.timed_out:
        return f"it did not end within {_LIMIT_S:g} s"
    return f"the process that reads it ended with {run.returncode}"


def main(path: Path) -> None:
    """Print the counters in the report at `path`, or why there are none, as JSON."""
    try:
        answer = _Answer(launches=read_report(path))
    except ReportError as error:
        answer = _Answer(error=str(error))
    sys.stdout.write(answer.model_dump_json())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
