"""What compute-sanitizer found in one run of a candidate on a GPU, tool by tool."""

from typing import Literal

from pydantic import Field

from .device_facts import DeviceFacts
from .record import Diagnostic, Record
from .status import Status

SanitizerTool = Literal["memcheck", "initcheck", "racecheck", "synccheck"]
SANITIZER_TOOLS: tuple[SanitizerTool, ...] = ("memcheck", "initcheck", "racecheck", "synccheck")


class SanitizerRun(Record):
    """One run under one tool."""

    tool: SanitizerTool
    outcome: Literal["passed", "findings", "unavailable", "timeout"]
    """passed: the tool saw every launch to its end and found nothing. unavailable: it did not
    judge, which says nothing about the candidate."""
    status: Status
    """passed unless there are findings; of these the first, as the candidate's status."""
    findings: tuple[Diagnostic, ...] = ()
    """Errors, then warnings, each once for its line with the number of its like."""
    reason: str | None = None
    """Why it is unavailable and what to do, one line."""
    log_path: str | None = None
    """What the tool said, whole."""
    sandbox: str | None = None
    elapsed_s: float


class SanitizerResult(Record):
    """The result of all tools that were asked for, on the candidate's named workload."""

    schema_: Literal["kopt.sanitizer/1"] = Field(default="kopt.sanitizer/1", alias="schema")
    status: Status
    """That of the first tool with findings, in the order of `SANITIZER_TOOLS`; passed if no tool
    found anything. `is_complete` says whether all of them judged."""
    kernel: str
    """Kernel id."""
    candidate: str
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    device: str
    gpu: DeviceFacts | None = None
    sanitizer: str | None = None
    """e.g. compute-sanitizer 2025.3.1; None if none was found."""
    runs: tuple[SanitizerRun, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """Of the compile stage, where the candidate did not get further."""
    elapsed_s: float

    @property
    def is_complete(self) -> bool:
        """Whether every tool judged; without it `passed` says little."""
        return bool(self.runs) and all(run.outcome in ("passed", "findings") for run in self.runs)
