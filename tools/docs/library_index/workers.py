"""Files into parts, in processes: what takes nearly all the time of a build.

A worker ends with its parent, however that ends, and leaves Ctrl-C to it.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.docs.chunking.library_chunks import chunker_version, library_chunks
from kopt.tools.docs.indexing.entries import card_of, entry_of, terms_version
from kopt.tools.docs.sources import SourceFile
from kopt.tools.docs.vectors import model_name, vector_model

from .parts import Parts

_AHEAD = 8
"""Files a worker that wait for it: enough to keep it busy, few to hold in memory."""


def part_key(file: SourceFile) -> str:
    """Return what the entries of a file depend on, as a hash: its content, its source, the code."""
    code = f"{chunker_version()} {terms_version()} {model_name()}"
    facts = (code, repr(file.source), file.path, file.sha)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def make_part(key: str, file: SourceFile, parts: Parts) -> None:
    """Keep the entries of the chunks of one file; none for a file without device code."""
    chunks = library_chunks(file)
    model = vector_model()
    vectors = model.rows([card_of(chunk) for chunk in chunks]) if model else [b""] * len(chunks)
    entries = [
        entry_of(chunk, chunk.symbol or "", f"{chunk.source} {chunk.path}", vector)
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    parts.add(key, entries)


def made_parts(
    files: Iterable[tuple[str, SourceFile]], parts: Parts, pool: ProcessPoolExecutor, most: int
) -> Iterator[None]:
    """Make the part of each file, given with its key; yield as each is there.

    Raises:
        SetupError: A process was killed, for want of memory most likely.
    """
    running: deque[Future[None]] = deque()
    try:
        for key, file in files:
            running.append(pool.submit(make_part, key, file, parts))
            if len(running) > most * _AHEAD:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    except BrokenProcessPool as error:
        raise SetupError(
            "a process of the build was killed, for want of memory most likely: run kopt docs"
            " build again, with KOPT_JOBS=1 if need be; what is done is kept"
        ) from error


def worker_pool(settings: Settings) -> ProcessPoolExecutor:
    """Return the processes of a build; each starts with the first file that needs it."""
    # A server that builds has threads, whose locks a fork would copy in any state.
    spawn = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(settings.jobs, spawn, _begin_worker)


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
