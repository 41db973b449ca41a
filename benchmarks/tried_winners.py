"""Where a promoted winner stands among what was tried for its kernel.

A winner is found by its tune values: a winner's header differs from the text that was swept, since
it names the variant of each shape. Whether the code below the header is the same is said, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tried_records import TriedCandidate, TriedSource, code_of

from kopt.kernels.problem import Problem
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_search import SUFFIX

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
