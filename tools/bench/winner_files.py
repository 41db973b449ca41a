"""Where winners lie, and whether a new one takes the place of an old one.

`<folder>/<problem>/<workload>.<arch>.receipt.json` names its source, which lies beside it once for
all workloads that it serves: as `<problem>.<arch>.cu`, or with the start of its id in the name
where another source has that one. Files are written beside their places and renamed into them, the
source first. A source is never changed, and removed once no receipt names it.
"""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import ensure_folder, write_atomically
from kopt.config.locks import file_lock
from kopt.kernels.bench_result import BaselinePath
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.promotion_result import WinnerFile
from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.shipped_kernels import EVIDENCE, evidence_of, source_of

from .bound_files import changed_files
from .receipt_file import read_receipt, receipt_text

OnExisting = Literal["keep_better", "replace"]
"""keep_better: an old winner of the same device and baseline stays unless the new one has the
greater speedup. replace: the new one is written, whatever is there."""


def winner_places(
    folder: Path, problem: Problem, workloads: Sequence[Workload], arch: str
) -> tuple[Path, ...]:
    """Return where receipts of several workloads lie below `folder`, whether or not they do."""
    suffix = f"{arch}{EVIDENCE['winner']}"
    return tuple(folder / problem.name / f"{one.name}.{suffix}" for one in workloads)


@contextmanager
def winners_lock(place: Path) -> Generator[None]:
    """Keep other promotions from writing to the folder of winners, where the lock's file stays.

    Raises:
        SetupError: The folder cannot be written.
    """
    folder = ensure_folder(place.parent)
    try:
        with file_lock(folder.parent / ".promotion.lock"):
            yield
    except OSError as error:
        raise SetupError(f"cannot write {folder}: {error.strerror}") from error


def source_file(place: Path, problem: str, candidate: Candidate) -> str:
    """Return the name that the source of a new winner gets beside `place`."""
    arch = place.name.removesuffix(EVIDENCE["winner"]).rpartition(".")[2]
    stems = (problem, f"{problem}-{candidate.id[:8]}", f"{problem}-{candidate.id}")
    names = [f"{stem}.{arch}.cu" for stem in stems]
    beside = (place.with_name(name) for name in names[:-1])
    return next((path.name for path in beside if _is_free(path, candidate)), names[-1])


def refuse_incomparable(
    places: Sequence[Path], problem: Problem, candidate: str, facts: DeviceFacts
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
        elif any(changed_files(problem, old.problem_files)):
            reason = "is of another state of the problem's files"
        if reason is not None:
            raise ToolError(_in_the_way(place, reason))


def place_winner(place: Path, receipt: Receipt, on_existing: OnExisting) -> WinnerFile:
    """Write the source and the receipt of one workload, unless a better winner is there.

    Raises:
        ToolError: What is there is damaged.
        SetupError: The folder cannot be written.
    """
    (evidence,) = receipt.workloads
    reason: str | None = None
    if on_existing == "keep_better":
        old = _old_receipt(place)
        if old is not None and old.candidate != receipt.candidate:
            reason = _why_kept(place, old, evidence)
    if reason is None:
        _write(place, receipt)
    return WinnerFile(
        workload=evidence.workload,
        source_path=str(source_of(place)),
        receipt_path=str(place),
        action="written" if reason is None else "kept_existing",
        reason=reason,
    )


def require_writable(places: Sequence[Path]) -> None:
    """Refuse, before minutes of measuring, a folder that could not be written; makes none.

    Raises:
        SetupError: The folder, or the nearest one above it that exists, cannot be written.
    """
    for folder in {place.parent for place in places}:
        nearest = next(above for above in (folder, *folder.parents) if above.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise SetupError(f"cannot write winners to {folder}: {nearest} is no writable folder")


def _is_free(path: Path, candidate: Candidate) -> bool:
    """Return whether no other source is in the way at `path`."""
    try:
        return path.read_bytes() == candidate.source.encode()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _old_receipt(place: Path) -> Receipt | None:
    """Return the receipt that is there; None if there is no winner."""
    if not place.exists():
        return None
    try:
        return read_receipt(place)
    except ToolError as error:
        raise ToolError(_in_the_way(place, f"cannot be read whole ({error})")) from error


def _why_kept(place: Path, old: Receipt, new: WorkloadEvidence) -> str | None:
    (evidence,) = (one for one in old.workloads if one.workload == new.workload)
    if _path(evidence.baseline) != _path(new.baseline):
        named = f"{evidence.baseline.label}, {evidence.baseline.library or 'of the problem'}"
        return _in_the_way(place, f"was compared with another baseline ({named})")
    if evidence.speedup < new.speedup:
        return None
    return (
        f"{source_of(place).name} is {evidence.speedup:.3f}x as fast as "
        f"{evidence.baseline.label}, this candidate {new.speedup:.3f}x"
    )


def _path(baseline: BaselinePath) -> tuple[str, bool, str | None]:
    return baseline.name, baseline.pdl, baseline.library


def _in_the_way(place: Path, reason: str) -> str:
    return (
        f"the winner {source_of(place)} {reason}, so it cannot be compared: replace it (--replace),"
        " or write elsewhere (--winners DIR)"
    )


def _write(place: Path, receipt: Receipt) -> None:
    replaced = _replaced_source(place)
    source = place.with_name(receipt.source_file)
    try:
        write_atomically(source, receipt.source, mode=0o644)
        write_atomically(place, receipt_text(receipt), mode=0o644)
    except OSError as error:
        raise SetupError(f"cannot write {source.parent}: {error.strerror}") from error
    if replaced is not None and replaced != source and not evidence_of(replaced):
        replaced.unlink(missing_ok=True)


def _replaced_source(place: Path) -> Path | None:
    """Return the source of the receipt that is there, if it is still the one of that receipt."""
    try:
        is_own = read_receipt(place).candidate == read_candidate(source_of(place)).id
    except ToolError:
        return None
    return source_of(place) if is_own else None
