"""Requests of tool calls and their progress: the arguments of tools, and what jobs are made of.

Plain data, checked for form only: that a kernel exists or a device can be opened is found out when
the work begins. The text under a field is what a model reads of the tool's argument. A candidate
that is named by path is read before the work becomes a job, so that its text is in `source`.
"""

from pathlib import PurePath
from typing import Annotated, Literal, cast

from pydantic import BeforeValidator, Field

from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.record import Record, ToldRecord

MAX_CANDIDATES = 12

Seed = Annotated[int, Field(ge=0, lt=1 << 32)]


def _alone(value: object) -> object:
    """Return the entry of a list of one: some callers list what only one is taken of."""
    if not isinstance(value, list):
        return value
    entries = cast("list[object]", value)
    return entries[0] if len(entries) == 1 else entries


def _listed(value: object) -> object:
    """Return a text as a list of it: some callers name one where several may be named."""
    return (value,) if isinstance(value, str) and value else value


DEVICE_CHARACTERS = 360
"""The longest name of a device: one of another machine has a user and a host in it."""
DeviceName = Annotated[
    str, Field(max_length=DEVICE_CHARACTERS, description="auto (a GPU, else sim), sim, or cuda:N.")
]
SimTarget = Annotated[
    str,
    BeforeValidator(_alone),
    Field(
        max_length=40,
        description="Of sim: the target or GPU, e.g. sm_90a, H200; default sm_100a (B200).",
    ),
]
EVERY = "all"
"""Tune values that stand for every choice."""
MAX_FILES = 12


class FileWork(ToldRecord):
    """The fields of all work on a candidate."""

    kernel: str = Field(max_length=200)
    """Kernel id, from list_kernels."""
    source: str = ""
    """The whole .cu text. Exactly one of source and path."""
    path: str = ""
    """A .cu file in the workspace, or a kopt:// address of one: shorter than source."""


class SourceWork(FileWork):
    """The fields of work on a candidate with one choice of tune values."""

    tune: dict[str, int] = Field(default_factory=dict[str, int], max_length=64)
    """Tune values, e.g. {"BLOCK": 256}; default: the header's first of each."""


class ComparedWork(FileWork):
    """The fields of work that takes several candidates or choices too; then it is a `TableWork`."""

    paths: tuple[str, ...] = Field(default=(), max_length=MAX_FILES)
    """Several files instead of path: one table, the fastest first."""
    tune: (
        Annotated[dict[str, int], Field(max_length=64)] | Annotated[str, Field(max_length=1000)]
    ) = Field(default_factory=dict[str, int])
    """{"BLOCK": 256}; "all": a table of every choice; "all,BLOCK=256": of those with it."""
    device: DeviceName = "auto"
    arch: SimTarget = ""

    @property
    def values(self) -> dict[str, int]:
        """The tune values of a single choice."""
        return {} if isinstance(self.tune, str) else self.tune


class CompileWork(SourceWork):
    """Compile for one or more architectures."""

    kind: Literal["compile"] = "compile"
    arch: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(default=(), max_length=8)
    """Targets or GPUs: sm_100a (B200, the default), sm_90a, H100, sm_80, ..."""


class CheckWork(SourceWork):
    """Run and compare with the oracle."""

    kind: Literal["check_correctness"] = "check_correctness"
    device: DeviceName = "auto"
    arch: SimTarget = ""
    level: CheckLevel = "quick"
    """full: every workload that the header claims, drawn shapes, hidden seeds; before a kernel is \
done."""
    seeds: tuple[Seed, ...] = Field(default=(1, 2, 3), min_length=1, max_length=16)
    """Input seeds; that of a mismatch reproduces it."""


class BenchWork(ComparedWork):
    """Check, then time against the baselines."""

    kind: Literal["benchmark"] = "benchmark"


class ProfileWork(ComparedWork):
    """Say what limits it."""

    kind: Literal["profile"] = "profile"
    counters: bool = True
    """Read hardware counters of a GPU: seconds."""
    sass: str = Field(default="", max_length=12)
    """Show machine code instead: "hot" (the hottest block), or of a source line, e.g. "31"."""


class NamedSource(Record):
    """The text of one file of a table."""

    path: str
    """Its name in the table; "" for a text without one."""
    source: str


class TableWork(Record):
    """Benchmark or profile several candidates, or choices of tune values, as one table."""

    kind: Literal["table"] = "table"
    tool: Literal["benchmark", "profile"]
    kernel: str
    files: tuple[NamedSource, ...]
    tune: dict[str, int] = Field(default_factory=dict[str, int])
    """The values that hold for every row."""
    every: bool
    """Whether each file has a row for every choice that has these values."""
    device: str = "auto"
    arch: str = ""


class SubmittedCandidate(ToldRecord):
    """One candidate that a caller hands in."""

    source: str = ""
    """The whole .cu text. Exactly one of source and path."""
    path: str = ""
    """Its file, as in compile."""
    hypothesis: str = Field(default="", max_length=MAX_HYPOTHESIS_CHARACTERS)
    """Why it should be faster, in one sentence."""
    family: str = Field(default="", max_length=40)
    """e.g. vectorization; default: the header's."""
    parents: tuple[int, ...] = Field(default=(), max_length=8)
    """Numbers of candidates that it comes from."""
    tune: dict[str, int] = Field(default_factory=dict[str, int], max_length=64)
    """Tune values; default: the first of each."""
    techniques: tuple[str, ...] = Field(default=(), max_length=4)
    """Techniques of the suggestion that it follows, to learn from."""


class StepWork(ToldRecord):
    """One round of a search: evaluate, select, say what to try next."""

    kind: Literal["beam_step"] = "beam_step"
    kernel: str = Field(default="", max_length=200)
    """Begins a new run; else run_id goes on with one."""
    run_id: str = Field(default="", max_length=80)
    """The run to go on with."""
    candidates: tuple[SubmittedCandidate, ...] = Field(default=(), max_length=MAX_CANDIDATES)
    """Up to 12; none: kopt's own proposer acts."""
    device: str = Field(default="auto", max_length=DEVICE_CHARACTERS)
    """auto, sim or cuda:N; a run stays on its own."""
    arch: Annotated[str, BeforeValidator(_alone)] = Field(default="", max_length=40)
    """Of a new run on sim, e.g. sm_90a; it stays with it."""


Work = Annotated[
    CompileWork | CheckWork | BenchWork | ProfileWork | TableWork | StepWork,
    Field(discriminator="kind"),
]


def tool_of(work: Work) -> str:
    """Return the name of the tool that was called for this work."""
    return work.tool if isinstance(work, TableWork) else work.kind


def sources_of(work: Work) -> list[str]:
    """Return the text of every candidate of this work."""
    match work:
        case StepWork():
            return [one.source for one in work.candidates]
        case TableWork():
            return [one.source for one in work.files]
        case _:
            return [work.source]


class Progress(Record):
    """The progress of a piece of work; `done` never falls while it is watched."""

    done: float
    total: float | None = None
    """The end, in the unit of `done`; None where it is not known."""
    message: str = ""
    at_us: int = 0


def source_name(path: str) -> str:
    """Return the file name of a candidate that was named by `path`, for messages."""
    return PurePath(path).name or "candidate.cu"
