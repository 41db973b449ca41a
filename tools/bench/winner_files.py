"""Where winners lie, and whether a new one takes the place of an old one.

`<folder>/<problem>/<workload>.<arch>.cu` with `.receipt.json` beside it: the same pair as in a
problem's own folder `winners/`. Both files are written beside their places and renamed into them.
The receipt comes last and holds the source, so that a pair that was cut short is noticed.
"""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import ensure_folder, fsync_path, replacing_file
from kopt.kernels.bench_result import BaselinePath
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.promotion_result import WinnerFile
from kopt.kernels.receipt import Receipt, WorkloadEvidence

from .receipt_file import problem_files, read_receipt, receipt_text

OnExisting = Literal["keep_better", "replace"]
"""keep_better: an old winner of the same device and baseline stays unless the new one has the
greater speedup. replace: the new one is written, whatever is there."""


@dataclass(frozen=True)
class WinnerPlace:
    """The pair of files of one workload on one architecture."""

    workload: str
    source: Path
    receipt: Path


def winner_place(folder: Path, workload: str, arch: str) -> WinnerPlace:
    """Return where a winner lies in its problem's folder of winners, whether or not it is there."""
    stem = folder / f"{workload}.{arch}"
    return WinnerPlace(workload, Path(f"{stem}.cu"), Path(f"{stem}.receipt.json"))


def refuse_incomparable(
    places: Sequence[WinnerPlace], problem: Problem, candidate: str, facts: DeviceFacts
) -> None:
    """Refuse, before anything is measured, to meet old winners that nothing can be said about.

    Raises:
        ToolError: An old winner is damaged, of another device, or of a problem that changed since.
    """
    for place in places:
        old = _old_receipt(place)
        if old is None or old.candidate == candidate:
            continue
        reason: str | None = None
        if old.device.uuid != facts.uuid:
            reason = f"was measured on another device ({old.device.name}, {old.device.uuid})"
        elif old.problem_files != problem_files(problem):
            reason = "is of another state of the problem's files"
        if reason is not None:
            raise ToolError(_in_the_way(place, reason))


def place_winner(place: WinnerPlace, receipt: Receipt, on_existing: OnExisting) -> WinnerFile:
    """Write the pair of one workload, unless a better one is there.

    Raises:
        ToolError: What is there is damaged.
        SetupError: The folder cannot be written.
    """
    (evidence,) = (one for one in receipt.workloads if one.workload == place.workload)
    reason: str | None = None
    if on_existing == "keep_better":
        old = _old_receipt(place)
        if old is not None and old.candidate != receipt.candidate:
            reason = _why_kept(place, old, evidence)
    if reason is None:
        _write_pair(place, receipt)
    return WinnerFile(
        workload=place.workload,
        source_path=str(place.source),
        receipt_path=str(place.receipt),
        action="written" if reason is None else "kept_existing",
        reason=reason,
    )


def require_writable(places: Sequence[WinnerPlace]) -> None:
    """Refuse, before minutes of measuring, a folder that could not be written; makes none.

    Raises:
        SetupError: The folder, or the nearest one above it that exists, cannot be written.
    """
    for folder in {place.source.parent for place in places}:
        nearest = next(above for above in (folder, *folder.parents) if above.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise SetupError(f"cannot write winners to {folder}: {nearest} is no writable folder")


def winner_places(
    folder: Path, problem: Problem, workloads: Sequence[Workload], arch: str
) -> tuple[WinnerPlace, ...]:
    """Return the places of several workloads below `folder`, which is for all problems."""
    own = folder / problem.name
    return tuple(winner_place(own, workload.name, arch) for workload in workloads)


def _old_receipt(place: WinnerPlace) -> Receipt | None:
    """Return the receipt that is there; None if there is no winner."""
    if not place.source.exists() and not place.receipt.exists():
        return None
    try:
        receipt = read_receipt(place.receipt)
        source = place.source.read_bytes()
    except (ToolError, OSError) as error:
        raise ToolError(_in_the_way(place, f"cannot be read whole ({error})")) from error
    if source != receipt.source.encode():
        raise ToolError(_in_the_way(place, "is not the source that its receipt is of"))
    return receipt


def _why_kept(place: WinnerPlace, old: Receipt, new: WorkloadEvidence) -> str | None:
    (evidence,) = (one for one in old.workloads if one.workload == place.workload)
    if _path(evidence.baseline) != _path(new.baseline):
        named = f"{evidence.baseline.label}, {evidence.baseline.library or 'of the problem'}"
        return _in_the_way(place, f"was compared with another baseline ({named})")
    if evidence.speedup < new.speedup:
        return None
    return (
        f"{place.source.name} is {evidence.speedup:.3f}x as fast as "
        f"{evidence.baseline.label}, this candidate {new.speedup:.3f}x"
    )


def _path(baseline: BaselinePath) -> tuple[str, bool, str | None]:
    return baseline.name, baseline.pdl, baseline.library


def _in_the_way(place: WinnerPlace, reason: str) -> str:
    return (
        f"the winner {place.source} {reason}, so it cannot be compared: replace it (--replace), or "
        "write elsewhere (--winners DIR)"
    )


def _write_pair(place: WinnerPlace, receipt: Receipt) -> None:
    ensure_folder(place.source.parent)
    texts = {place.receipt: receipt_text(receipt), place.source: receipt.source}
    try:
        with ExitStack() as both:  # its files take their places when both are written
            for path, text in texts.items():
                fresh = both.enter_context(replacing_file(path, mode=0o644))
                fresh.write_bytes(text.encode())
                fsync_path(fresh)
    except OSError as error:
        raise SetupError(f"cannot write {place.source.parent}: {error.strerror}") from error
