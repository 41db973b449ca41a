"""`build_library`: the library index from its sources, again only where something changed.

Obtain, chunk what is new in several processes, merge, write beside the old index and rename.
Whatever ends it, the old index stays readable and what was chunked is kept.
"""

import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from kopt.config.errors import SetupError
from kopt.config.files import ensure_folder
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import (
    WAITING,
    BuildProgress,
    BuildResult,
    BuildStep,
    OnProgress,
    SkippedSource,
)
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path, read_meta
from kopt.tools.docs.library.harvest import FileSelection, Harvested, harvest
from kopt.tools.docs.vectors import NO_MODEL, WHAT_THE_EXTRA_ADDS, model_name

from .assembly import assemble, index_key
from .parts import Parts, PartsDamaged, SourceParts
from .workers import made_parts, part_key, worker_pool


@dataclass
class _Work:
    """What one build has done so far."""

    settings: Settings
    on_progress: OnProgress
    sources: list[SourceParts] = field(default_factory=list[SourceParts])
    skipped: list[SkippedSource] = field(default_factory=list[SkippedSource])
    reused: int = 0
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def timed(self, step: BuildStep) -> Generator[None]:
        """Add what the body takes to `step`."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - started
            self.seconds[step] = round(self.seconds.get(step, 0.0) + spent, 2)


def build_library(
    selection: FileSelection, settings: Settings, on_progress: OnProgress
) -> BuildResult:
    """Build the library index, or as much of it as changed, and return what it holds.

    One process builds at a time; another one waits, says so, and then finds little to do. Readers
    have the old index until the new one is whole.

    Raises:
        SetupError: No source could be had, or the folder cannot be written; the message says what
            to do.
    """
    folder = ensure_folder(library_folder(settings))
    with file_lock(folder / "lock", lambda: on_progress(WAITING)):
        for left in folder.rglob(".new-*"):  # by a build that was killed while it wrote
            left.unlink()
        try:
            return _built(selection, _Work(settings, on_progress))
        except PartsDamaged:  # what is kept only saves time
            Parts(settings).drop()
            return _built(selection, _Work(settings, on_progress))


def _built(selection: FileSelection, work: _Work) -> BuildResult:
    _gather(selection, work)
    parts = Parts(work.settings)
    skipped = {one.source for one in work.skipped}
    work.sources += [one for one in parts.sources() if one.source.key in skipped]
    if not work.sources:
        raise SetupError(
            "no source could be had: "
            + "; ".join(f"{one.source}: {one.reason}" for one in work.skipped)
        )
    parts.settle(work.sources)
    meta = read_meta(library_index_path(work.settings))
    is_new = selection.fresh or not meta.sources or meta.key != index_key(work.sources)
    if is_new:
        with work.timed("write"):
            assemble(work.settings, work.on_progress)
    return _result(work, is_new)


def _gather(selection: FileSelection, work: _Work) -> None:
    """Obtain the sources and see that there is a part for each of their files."""
    known = set[str]() if selection.fresh else Parts(work.settings).known()
    found = harvest(selection, work.settings, work.on_progress)
    pool = worker_pool(work.settings)
    try:
        while True:
            with work.timed("download"):
                one = next(found, None)
            if one is None:
                return
            if isinstance(one, SkippedSource):
                work.skipped.append(one)
                continue
            with work.timed("read"):
                work.sources.append(_read(one, known, pool, work))
    finally:
        pool.shutdown(cancel_futures=True)


def _read(
    harvested: Harvested, known: set[str], pool: ProcessPoolExecutor, work: _Work
) -> SourceParts:
    files = {part_key(file): file for file in harvested.files}
    new = [(key, file) for key, file in files.items() if key not in known]
    done = len(files) - len(new)
    work.reused += done
    name = harvested.source.key
    work.on_progress(BuildProgress("read", name, done, len(files)))
    for _ in made_parts(new, Parts(work.settings), pool, work.settings.jobs):
        done += 1
        work.on_progress(BuildProgress("read", name, done, len(files)))
    return SourceParts(source=harvested.source, keys=tuple(files))


def _result(work: _Work, is_new: bool) -> BuildResult:
    path = library_index_path(work.settings)
    meta = read_meta(path)
    kept = {one.source for one in work.skipped}
    sources = tuple(one.model_copy(update={"kept": one.source in kept}) for one in meta.sources)
    return BuildResult(
        index=str(path),
        is_new=is_new,
        sources=sources,
        skipped=tuple(work.skipped),
        chunks=sum(one.chunks for one in sources),
        index_bytes=path.stat().st_size,
        files=sum(one.files for one in sources),
        reused_files=work.reused,
        seconds=work.seconds,
        synopses_without_code=meta.synopses_without_code,
        degraded=WHAT_THE_EXTRA_ADDS if model_name() == NO_MODEL else None,
    )
