"""What was tried, as records under benchmarks/tried/: one file of JSON lines a problem.

A line is a source or a candidate. Nothing of the machine that made them is kept but its GPU, model
and UUID, with driver and CUDA version.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kopt.kernels.problem import Problem
from kopt.kernels.record import Record
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.agents.verifier import without_comments
from kopt.search.records.evaluation import EvaluationLevel
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.verify_all import SUFFIX

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


_OF_AXES = "KOPT_"
"""What the names of specialised axes begin with."""
_MOST_ADDED = 1


@dataclass(frozen=True)
class Winner:
    """One kernel's promoted source, as its receipt has it."""

    problem: str
    kernel: str
    device: str
    file: str
    """Its name in the problem's folder of winners."""
    tune: dict[str, int]
    """The values with which it serves this kernel."""
    speedup: float
    """Median of fresh processes."""
    code: str
    """Name of the code below its header (`code_of`)."""


@dataclass(frozen=True)
class Place:
    """A winner among the candidates that were timed on its device against the same baseline."""

    candidate: TriedCandidate
    number: int
    """From 1, by measured ratio."""
    of: int
    same_code: bool
    added: tuple[str, ...]
    """Tune names of the winner that the candidate's code does not have."""


def read_winners(problem: Problem) -> Iterator[Winner]:
    """Yield the winners in a problem's folder, in the order of its workloads."""
    for workload in problem.workloads:
        for path in sorted((problem.folder / "winners").glob(f"{workload.name}.*{SUFFIX}")):
            receipt = read_receipt(path)
            (evidence,) = (one for one in receipt.workloads if one.workload == workload.name)
            defines = receipt.plans[workload.name].defines
            yield Winner(
                problem=problem.name,
                kernel=evidence.kernel,
                device=receipt.device.name,
                file=receipt.source_file,
                tune={n: value for n, value in defines.items() if not n.startswith(_OF_AXES)},
                speedup=evidence.speedup,
                code=code_of(receipt.source),
            )


def place_of(
    winner: Winner, candidates: Sequence[TriedCandidate], sources: Mapping[str, TriedSource]
) -> Place | None:
    """Return the candidate with the winner's values: of its own code before others, then the best.

    A code may have had one tune name less: the winner's later one is then no reason to miss it.

    Args:
        winner: Of the candidates' kernel.
        candidates: What was tried for that kernel.
        sources: By digest.

    Returns:
        None if none of those that were timed on its device has its values.
    """
    timed = [one for one in candidates if one.speedup and one.device == winner.device]
    matching = [one for one in timed if _has_values(one, winner)]
    if not matching:
        return None

    def rank(one: TriedCandidate) -> tuple[bool, float]:
        same_code = sources[one.source].code == winner.code
        return same_code, one.speedup or 0.0

    best = max(matching, key=rank)
    rivals = [one for one in timed if one.baseline == best.baseline]
    faster = [one for one in rivals if (one.speedup or 0.0) > (best.speedup or 0.0)]
    return Place(best, len(faster) + 1, len(rivals), rank(best)[0], _added(best, winner))


def _has_values(one: TriedCandidate, winner: Winner) -> bool:
    different = [name for name, value in winner.tune.items() if one.tune.get(name) != value]
    return len(different) <= _MOST_ADDED and different == list(_added(one, winner))


def _added(one: TriedCandidate, winner: Winner) -> tuple[str, ...]:
    return tuple(name for name in winner.tune if name not in one.tune)
