"""Files into entries, in processes: what takes nearly all the time of a build.

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
from kopt.tools.docs.chunking.library_chunks import chunker_version, library_chunks
from kopt.tools.docs.indexing.entries import card_of, entry_of, terms_version
from kopt.tools.docs.sources import SourceFile
from kopt.tools.docs.vectors import model_name, vector_model

from .parts import Part, part_of

_AHEAD = 8
"""Files a worker that wait for it: enough to keep it busy, few to hold in memory."""


def part_key(file: SourceFile) -> str:
    """Return what the entries of a file depend on, as a hash: its content, its source, the code."""
    code = f"{chunker_version()} {terms_version()} {model_name()}"
    facts = (code, repr(file.source), file.path, file.sha)
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()


def file_part(key: str, file: SourceFile) -> Part:
    """Return the entries of the chunks of one file; none for a file without device code."""
    chunks = library_chunks(file)
    model = vector_model()
    vectors = model.rows([card_of(chunk) for chunk in chunks]) if model else [b""] * len(chunks)
    entries = [
        entry_of(chunk, chunk.symbol or "", f"{chunk.source} {chunk.path}", vector)
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    return part_of(key, entries)


class ChunkWorkers:
    """Processes that turn files into entries; a context manager."""

    def __init__(self, processes: int) -> None:
        """Start none yet; the first file does."""
        self._processes = processes
        # A server that builds has threads, whose locks a fork would copy in any state.
        self._pool = ProcessPoolExecutor(
            processes, multiprocessing.get_context("spawn"), _begin_worker
        )

    def __enter__(self) -> "ChunkWorkers":
        """Return self."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Drop what has not begun; wait for the files in work."""
        self._pool.shutdown(cancel_futures=True)

    def parts(self, files: Iterable[tuple[str, SourceFile]]) -> Iterator[Part]:
        """Yield the part of each file, given with its key, in the order of `files`.

        Raises:
            SetupError: A process was killed, for want of memory most likely.
        """
        running: deque[Future[Part]] = deque()
        try:
            for key, file in files:
                running.append(self._pool.submit(file_part, key, file))
                if len(running) > self._processes * _AHEAD:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        except BrokenProcessPool as error:
            raise SetupError(
                "a process of the build was killed, for want of memory most likely: run kopt docs"
                " build again, with KOPT_JOBS=1 if need be; what is done is kept"
            ) from error


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
