"""What a candidate is compared with: the fastest library path that passes its check, the reference.

Where no library path passes, the reference kernel is the main baseline and the result says why the
others are not. Kept between benchmarks is only *which* path was fastest and which were slower, for
this device, driver, libraries and kernel: never a time. The chosen path and all that were rejected
are checked anew every time; a path that becomes available, or fails, makes the choice be made
again. Several paths are timed against each other in one session; the order alone is the result.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from statistics import median

import numpy as np

from kopt.config.errors import ToolError
from kopt.kernels.bench_result import BaselinePath, RejectedBaseline
from kopt.kernels.record import Record, because
from kopt.tools.check.case_data import CaseData
from kopt.tools.devices.lost_timing import begun_again
from kopt.tools.devices.timer import LibrarySide, TimingFailure, TimingRequest, replay_each

from .kept_records import forget, keep, load_kept
from .library_path import check_path, rejection
from .reference_side import (
    BaselineSide,
    VerifiedProgram,
    candidate_side,
    reference_kernel,
    reference_path,
)
from .request import BaselineChoice
from .side_by_side import Contest
from .timed_case import TimedCase, find_faulty, timing_request

# Distributions whose version may change which path is fastest, or what runs at all.
_LIBRARIES = (
    "flashinfer-python",
    "flashinfer-jit-cache",
    "flashinfer-cubin",
    "apache-tvm-ffi",
    "nvidia-cutlass-dsl",
    "cuda-tile",
    "deep-gemm",
    "nvidia-cudnn-frontend",
    "torch",
    "triton",
)


class KeptChoice(Record):
    """What was found earlier."""

    fastest: BaselinePath
    slower: tuple[BaselinePath, ...]


@dataclass(frozen=True)
class LibraryChoice:
    """The paths of libraries that may be timed."""

    like: tuple[BaselineSide, ...] = ()
    """Like for like, fastest first; slower ones may be missing."""
    unlike: tuple[BaselineSide, ...] = ()
    """Right, but not like for like."""
    rejected: tuple[RejectedBaseline, ...] = ()


def choose_library(
    case: TimedCase, data: CaseData, excluded: Sequence[RejectedBaseline]
) -> LibraryChoice:
    """Return the fastest path on the timed inputs `data`, and what became of the others.

    `excluded` are paths that failed earlier in the same benchmark.

    Raises:
        InfraError: The device failed, not a library.
    """
    named = {(entry.name, entry.pdl) for entry in excluded}
    sides = {
        BaselinePath(name=baseline.name, pdl=pdl): LibrarySide(baseline=baseline, pdl=pdl)
        for baseline in case.problem.baselines
        for pdl in baseline.pdl
        if (baseline.name, pdl) not in named
    }
    key = _key(case)
    kept = load_kept(case.settings, key, KeptChoice)
    slower = () if kept is None else kept.slower
    checked = [check_path(case, data, side) for path, side in sides.items() if path not in slower]
    if kept is not None and [one.path for one in _like(checked)] != [kept.fastest]:
        kept = None
        checked += [check_path(case, data, side) for path, side in sides.items() if path in slower]
    like = _like(checked)
    failed: tuple[RejectedBaseline, ...] = ()
    if kept is None and like:
        like, failed = sort_paths(case, like)
        if like:
            fastest, *others = (one.path for one in like)
            keep(case.settings, key, KeptChoice(fastest=fastest, slower=tuple(others)))
    rejected = (path for path in checked if isinstance(path, RejectedBaseline))
    return LibraryChoice(
        like=like,
        unlike=tuple(p for p in checked if isinstance(p, BaselineSide) and p.differences),
        rejected=(*excluded, *rejected, *failed),
    )


def _like(checked: Sequence[BaselineSide | RejectedBaseline]) -> tuple[BaselineSide, ...]:
    return tuple(p for p in checked if isinstance(p, BaselineSide) and not p.differences)


def _key(case: TimedCase) -> dict[str, str]:
    source = case.problem.folder / "baseline.py"
    code = source.read_bytes() if source.is_file() else b""
    declared = "".join(baseline.model_dump_json() for baseline in case.problem.baselines)
    return case.key(
        "fastest_path/1",
        baselines=hashlib.sha256(code + declared.encode()).hexdigest(),
        libraries=" ".join(f"{name} {_version(name)}" for name in _LIBRARIES),
        environment=repr(case.settings.library_environment),
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "none"


_SEQUENCES = 8
_ROUNDS = 4
"""Replays of each path in a sequence."""


def sort_paths(
    case: TimedCase, paths: Sequence[BaselineSide]
) -> tuple[tuple[BaselineSide, ...], tuple[RejectedBaseline, ...]]:
    """Return the paths, fastest first, and those that fail when they are timed.

    Raises:
        InfraError: The device failed, not a path.
    """
    left = list(paths)
    failed: list[RejectedBaseline] = []
    while len(left) > 1:
        request = timing_request(case, tuple(path.side for path in left))
        times = _replay_all(case, request)
        if not isinstance(times, TimingFailure):
            order = sorted(range(len(left)), key=lambda place: times[place])
            return tuple(left[place] for place in order), tuple(failed)
        failure = find_faulty(request, times, case.device)
        if failure.side is None:
            raise ValueError("a failure that was attributed has a side")
        failed.append(timing_rejection(left.pop(failure.side).path, failure))
    return tuple(left), tuple(failed)


def timing_rejection(path: BaselinePath, failure: TimingFailure) -> RejectedBaseline:
    """Return why a path that passed its check is not a baseline after all."""
    said = f"{failure.outcome.status}{because(failure.outcome.diagnostics)}"
    return rejection(path, "failed_check", f"it fails when it is timed, with {said}")


@begun_again
def _replay_all(case: TimedCase, request: TimingRequest) -> list[float] | TimingFailure:
    """Return the median time of each side in microseconds."""
    rng = np.random.default_rng(case.seed)
    times: list[list[float]] = [[] for _ in request.sides]
    with case.device.open_timing(request) as session:
        if isinstance(session, TimingFailure):
            return session
        sequences: list[list[int]] = [
            [side for _ in range(_ROUNDS) for side in rng.permutation(len(times)).tolist()]
            for _ in range(_SEQUENCES)
        ]
        measured = replay_each(session, sequences)
        if isinstance(measured, TimingFailure):
            return measured
        for sequence, replays in zip(sequences, measured, strict=True):
            for side, time_us in zip(sequence, replays.us_per_call, strict=True):
                times[side].append(time_us)
    return [median(values) for values in times]


def choose_contestants(
    case: TimedCase,
    candidate: VerifiedProgram,
    choice: BaselineChoice,
    excluded: tuple[RejectedBaseline, ...],
) -> Contest:
    """Return the candidate with its baselines, each verified on the timed inputs.

    It is not compared with itself, where it is the reference kernel and a library is there;
    `excluded` are library paths that failed earlier in the same benchmark.

    Raises:
        ToolError: A library was asked for and no path of it passes, or reference.cu is wrong.
        InfraError: The device failed.
    """
    if choice == "every":
        forget(case.settings, _key(case))  # check and sort all paths
    library = LibraryChoice(rejected=excluded)
    if choice != "reference":
        library = choose_library(case, candidate.verified.data, excluded)
    if choice == "library" and not library.like:
        raise ToolError(_no_library(case, library.rejected))
    reference = reference_kernel(case, candidate)
    sides = list(library.like if choice == "every" else library.like[:1])
    if not sides or reference is not candidate:
        program = reference.program
        sides.append(BaselineSide(reference_path(program), candidate_side(program)))
    return Contest(
        candidate=candidate.program,
        verified=candidate.verified,
        witness=reference.verified,
        baselines=(*sides, *library.unlike),
        rejected=library.rejected,
    )


def _no_library(case: TimedCase, rejected: Sequence[RejectedBaseline]) -> str:
    reasons = "; ".join(
        f"{entry.name}{' with PDL' if entry.pdl else ''}: {entry.reason}" for entry in rejected
    )
    return (
        f"no library path of {case.kernel} can be a baseline on {case.device.name} "
        f"({reasons or 'the problem names none'}); baselines `auto` or `reference` compare with "
        "the reference kernel"
    )
