"""What a call says of a kernel, and the names of the files beside it."""

from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import Record
from kopt.tools.devices.timer import Side

FILE = "file"
"""Begins the names of arrays that are files: `file/<name>`."""


class FolderName(Record):
    """A problem's folder, as both machines know it."""

    packaged: str | None = None
    """Its path within kopt; None for a folder of the user's own."""
    digest: str | None = None
    """It identifies the content of a folder of the user's own; None for one of kopt."""


class SentProgram(Record):
    """A candidate resolved for one workload; its cubin is `file/cubin`, where it has one."""

    source: str
    source_name: str
    problem: Problem
    folder: FolderName
    plan: LaunchPlan
    arch: str


class SentShot(Record):
    """One call of a plan under a tool; its cubin is `file/cubin`, its inputs lie beside it."""

    problem: Problem
    workload: Workload
    plan: LaunchPlan


class SentTiming(Record):
    """The kernel and the sides of a call that times, or that runs a library.

    The cubin of side k is `file/<k>`.
    """

    problem: Problem
    folder: FolderName
    workload: Workload
    sides: tuple[Side, ...]
    poison: int
    timeout_s: float
