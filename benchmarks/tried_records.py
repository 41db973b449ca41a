"""What was tried, as records under benchmarks/tried/: one file of JSON lines a problem.

A line is a source or a candidate. Nothing of the machine that made them is kept but its GPU, model
and UUID, with driver and CUDA version.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.agents.bare_source import without_comments
from kopt.search.records.evaluation import EvaluationLevel

FOLDER = Path(__file__).with_name("tried")
_HEADER_END = "*/"
_EMPTY_LINES = re.compile(r"(?<!\\)\n\n+")  # but for one that ends a macro


class TriedSource(Record):
    """One text, with the `tune` lists that were swept."""

    type: Literal["source"] = "source"
    sha: str
    """SHA-256 of the text."""
    name: str
    code: str
    """`code_of` the text: the same in sources that differ in header and comments only."""
    note: str
    """Its author's hypothesis; empty where there is none."""
    text: str


class TriedCandidate(Record):
    """One source with one choice of tune values, and what came of it.

    Ratio and times are of the kernel's own workload, from the last, longest measurement.
    """

    type: Literal["candidate"] = "candidate"
    kernel: str
    run: str
    seq: int
    date: str
    """UTC day of the run's beginning, ISO 8601."""
    device: str
    gpu: str | None = None
    """UUID; None for runs before it was kept."""
    driver: str
    cuda: str
    arch: str
    source: str
    """`sha` of its source."""
    tune: dict[str, int]
    family: str
    proposer: str
    techniques: tuple[str, ...] = ()
    level: EvaluationLevel
    """The evaluation that decides: the first that failed, else the last that was timed."""
    status: Status
    summary: str
    baseline: str | None = None
    speedup: float | None = None
    """Baseline time / kernel time; None where no time counts."""
    interval: tuple[float, float] | None = None
    """95 %."""
    verdict: Verdict | None = None
    provenance: Provenance = Provenance.UNAVAILABLE
    """Of speedup and times."""
    kernel_us: float | None = None
    baseline_us: float | None = None
    registers: int | None = None
    """A thread, computed from the binary, as are the spills."""
    spill_bytes: int | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """Its place in the file."""
        return self.kernel, self.run, self.seq


_LINE: TypeAdapter[TriedSource | TriedCandidate] = TypeAdapter(
    Annotated[TriedSource | TriedCandidate, Field(discriminator="type")]
)


@dataclass(frozen=True)
class Tried:
    """All that was tried for one problem: sources by digest, candidates by kernel, run, number."""

    sources: tuple[TriedSource, ...] = ()
    candidates: tuple[TriedCandidate, ...] = ()


def code_of(text: str) -> str:
    """Return the name of the code below a source's header: 8 digits of its SHA-256.

    Comments and empty lines do not count.
    """
    code = without_comments(text).partition(_HEADER_END)[2].strip()
    return hashlib.sha256(_EMPTY_LINES.sub("\n", code).encode()).hexdigest()[:8]


def merged(parts: Iterable[Tried]) -> Tried:
    """Return all of `parts` in order; of what is in several the last counts."""
    sources: dict[str, TriedSource] = {}
    candidates: dict[tuple[str, str, int], TriedCandidate] = {}
    for part in parts:
        sources |= {one.sha: one for one in part.sources}
        candidates |= {one.key: one for one in part.candidates}
    return Tried(
        tuple(sources[sha] for sha in sorted(sources)),
        tuple(candidates[key] for key in sorted(candidates)),
    )


def read_tried(path: Path) -> Tried:
    """Return what a file holds; nothing where there is none."""
    if not path.is_file():
        return Tried()
    lines = [_LINE.validate_json(line) for line in path.read_text("utf-8").splitlines()]
    return Tried(
        tuple(line for line in lines if isinstance(line, TriedSource)),
        tuple(line for line in lines if isinstance(line, TriedCandidate)),
    )


def write_tried(path: Path, tried: Tried) -> None:
    """Replace the file at `path`."""
    path.write_text("".join(f"{line}\n" for line in _lines(tried)), "utf-8")


def _lines(tried: Tried) -> Iterator[str]:
    for one in (*tried.sources, *tried.candidates):
        yield one.model_dump_json(exclude_none=True)
