"""What a build of the library index is asked for, tells while it runs, and gives."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record
from kopt.tools.docs.records import BuiltSource

BuildStep = Literal["wait", "download", "read", "write"]


@dataclass(frozen=True)
class BuildProgress:
    """How far a step of the build is; steps follow each other, `download` and `read` by source."""

    step: BuildStep
    """`wait`: for another process that builds; `download`: in bytes; `read`: in files; `write`:
    the index itself, in documents."""
    source: str | None
    """Key of the source, for `download` and `read`."""
    done: int
    total: int | None
    """Number of all units of the step; None while it is not known."""


OnProgress = Callable[[BuildProgress], None]
WAITING = BuildProgress("wait", None, 0, None)
"""Progress of a build that waits for another process."""


class SkippedSource(Record):
    """A source that was asked for and could not be had."""

    source: str
    reason: str
    """One line that says what to do."""


class BuildResult(Record):
    """The library index after a build."""

    schema_: Literal["kopt.docs-build/1"] = Field(default="kopt.docs-build/1", alias="schema")
    status: Literal["passed"] = "passed"
    index: str
    """Path of the index file."""
    is_new: bool
    """False if the index held exactly this already."""
    sources: tuple[BuiltSource, ...]
    skipped: tuple[SkippedSource, ...]
    chunks: int
    index_bytes: int
    files: int
    reused_files: int
    """Files whose chunks were there from an earlier build."""
    seconds: dict[str, float]
    """By step, in the order in which they ran; steps of several sources are added up."""
    synopses_without_code: tuple[str, ...] = ()
    """Names that kopt has a synopsis of and that these versions of the libraries do not have."""
    degraded: str | None = None
    """What the index lacks and why; None for nothing."""
