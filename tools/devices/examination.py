"""The interface to a GPU that NVIDIA's tools reach only where it is: on another machine.

A profiler or a sanitizer starts a process of its own beside the workers. For a GPU of this machine
the stages start it themselves (tools/profiling/one_shot.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from kopt.config.errors import SetupError
from kopt.kernels.check_result import SanitizerRun, SanitizerTool
from kopt.kernels.counters import HardwareCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload

from .device import Arrays


@dataclass(frozen=True)
class ExaminedCall:
    """One call of a plan, as a tool sees it."""

    problem: Problem
    workload: Workload
    plan: LaunchPlan
    """The final plan, as it is launched."""
    cubin: bytes
    """It names source lines where a cubin with lines was built (tools/cuda/nvcc.py)."""
    inputs: Arrays

    @property
    def kernel_id(self) -> str:
        """`<problem>_<workload>`."""
        return self.problem.kernel_id(self.workload)


@dataclass(frozen=True)
class CounterReading:
    """Counters, and the files that their paths name."""

    counters: HardwareCounters
    files: Mapping[str, bytes]
    """Contents are found by the last part of a path."""

    def kept_in(self, folder: Path) -> HardwareCounters:
        """Write the files to `folder` and return the counters with their paths there."""
        found = self.counters
        paths = {
            "log_path": _kept(found.log_path, self.files, folder),
            "report_path": _kept(found.report_path, self.files, folder),
        }
        return found.model_copy(update=paths)


@dataclass(frozen=True)
class SanitizerReading:
    """Runs of a sanitizer, and the files that their paths name."""

    program: str | None
    """It comes with its version; None if there is none that is whole."""
    runs: tuple[SanitizerRun, ...]
    files: Mapping[str, bytes]

    def kept_in(self, folder: Path) -> tuple[SanitizerRun, ...]:
        """Write the files to `folder` and return the runs with their paths there."""
        return tuple(
            run.model_copy(update={"log_path": _kept(run.log_path, self.files, folder)})
            for run in self.runs
        )


@runtime_checkable
class ExaminesItself(Protocol):
    """A GPU of another machine."""

    def read_counters(self, call: ExaminedCall) -> CounterReading:
        """Return what Nsight Compute reads of one call there, or why there is nothing."""
        ...

    def sanitize(
        self, call: ExaminedCall, tools: tuple[SanitizerTool, ...], limit_s: float
    ) -> SanitizerReading:
        """Return what compute-sanitizer finds there, within `limit_s` for each tool."""
        ...


def _kept(path: str | None, files: Mapping[str, bytes], folder: Path) -> str | None:
    """Write the file that a path of another machine names; return its path here."""
    name = None if path is None else Path(path).name
    if name is None or name not in files:
        return None
    try:
        (folder / name).write_bytes(files[name])
    except OSError as error:
        raise SetupError(f"cannot write to {folder}: {error.strerror}") from error
    return str(folder / name)
