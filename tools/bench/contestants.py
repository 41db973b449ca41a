"""Who a candidate is compared with: library paths that pass their check, and the reference kernel.

Where no library path passes, the reference kernel is the main baseline and the result says why
the others are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.kernels.bench_result import BaselinePath, RejectedBaseline
from kopt.tools.devices.device import Program

from .library_choice import LibraryChoice, choose_library, forget_choice
from .library_path import AcceptedPath
from .reference_side import candidate_side, reference_path, reference_program
from .request import BaselineChoice
from .side_by_side import BaselineSide, Contest
from .timed_case import TimedCase, Verified


@dataclass(frozen=True)
class Wanted:
    """What is asked of the baselines."""

    choice: BaselineChoice
    candidate: Program
    """Not compared with itself, where it is the reference kernel and a library is there."""
    excluded: tuple[RejectedBaseline, ...] = ()
    """Library paths that failed earlier in the same benchmark."""


def choose_contestants(case: TimedCase, verified: Verified, wanted: Wanted) -> Contest:
    """Return the candidate with its baselines, each verified on the timed inputs.

    Raises:
        ToolError: A library was asked for and no path of it passes, or reference.cu is wrong.
        InfraError: The device failed.
    """
    if wanted.choice == "every":
        forget_choice(case)
    library = LibraryChoice(rejected=wanted.excluded)
    if wanted.choice != "reference":
        library = choose_library(case, verified.data, wanted.excluded)
    if wanted.choice == "library" and not library.paths:
        raise ToolError(_no_library(case, library.rejected))
    reference = reference_program(case)
    side = candidate_side(reference)
    sides: list[BaselineSide] = []
    paths = library.paths if wanted.choice == "every" else library.paths[:1]
    sides += [_library_side(path) for path in paths]
    if not sides or side != candidate_side(wanted.candidate):
        sides.append(BaselineSide(reference_path(reference), side))
    sides += [_library_side(path) for path in library.unlike]
    return Contest(wanted.candidate, verified, tuple(sides), library.rejected)


def _library_side(path: AcceptedPath) -> BaselineSide:
    named = BaselinePath(name=path.side.baseline.name, pdl=path.side.pdl)
    return BaselineSide(named, path.side, path.differences)


def _no_library(case: TimedCase, rejected: Sequence[RejectedBaseline]) -> str:
    reasons = "; ".join(
        f"{entry.name}{' with PDL' if entry.pdl else ''}: {entry.reason}" for entry in rejected
    )
    return (
        f"no library path of {case.kernel} can be a baseline on {case.device.name} "
        f"({reasons or 'the problem names none'}); baselines `auto` or `reference` compare with "
        "the reference kernel"
    )
