"""What can be asked of kopt's stages by a tool call: the records that a job is made of.

Plain data, checked for form only: that a kernel exists or a device can be opened is found out when
the work begins. Sources travel as text; whoever takes a path reads it before.
"""

from typing import Annotated, Literal

from pydantic import Field

from kopt.kernels.check_result import CheckLevel
from kopt.kernels.record import Record


class SourceWork(Record):
    """What all work on one candidate names."""

    kernel: str
    """Kernel id."""
    source: str
    """The candidate's text."""
    source_name: str = "candidate.cu"
    """Its file name, for messages."""
    tune: dict[str, int] | None = None
    """Tune values; None: the header's defaults."""


class CompileWork(SourceWork):
    """Compile for one or more architectures."""

    kind: Literal["compile"] = "compile"
    archs: tuple[str, ...] = ()
    """Compiler targets; empty: the default."""


class CheckWork(SourceWork):
    """Run and compare with the oracle."""

    kind: Literal["check_correctness"] = "check_correctness"
    device: str = "auto"
    """auto, sim or cuda:N."""
    level: CheckLevel = "quick"
    seeds: tuple[int, ...] = (1, 2, 3)


class BenchWork(SourceWork):
    """Check, then time against the baselines."""

    kind: Literal["benchmark"] = "benchmark"
    device: str = "auto"


class ProfileWork(SourceWork):
    """Say what limits it."""

    kind: Literal["profile"] = "profile"
    device: str = "auto"
    counters: bool = True


class StepCandidate(Record):
    """One candidate that an agent hands to a step of the search."""

    source: str
    source_name: str = "candidate.cu"
    hypothesis: str = ""
    """Why it should be faster, in one sentence."""
    family: str = ""
    """A strategy family; empty: the first of its header."""
    parents: tuple[int, ...] = ()
    """Numbers of the candidates of the same run that it comes from."""
    tune: dict[str, int] | None = None
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies to its first parent."""


class StepWork(Record):
    """One round of a search: evaluate, select, say what to try next."""

    kind: Literal["beam_step"] = "beam_step"
    kernel: str | None = None
    """Begins a new run for this kernel; exactly one of `kernel` and `run_id`."""
    run_id: str | None = None
    candidates: tuple[StepCandidate, ...] = ()
    """Empty: kopt's own proposer acts."""
    device: str = "auto"


Work = Annotated[
    CompileWork | CheckWork | BenchWork | ProfileWork | StepWork, Field(discriminator="kind")
]
