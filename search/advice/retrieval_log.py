"""What was retrieved for a run: one JSON line each in `retrievals.jsonl` of the run's folder.

A file beside the run's database, which has one writer: a run's agents search while it is driven,
from other processes. A line is appended under a lock and synced before its answer is handed out,
so that a study never rests on a text whose reading is not recorded.
"""

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from kopt.config.errors import SetupError
from kopt.config.locks import file_lock
from kopt.kernels.record import Record

FILE_NAME = "retrievals.jsonl"


class RetrievedText(Record):
    """One text that was handed out."""

    uid: str
    score: float | None = None
    """The score of a hit; None for a document that was read by its uid."""
    sha256: str
    """SHA-256 of the text that was handed out, in UTF-8."""
    left_out_lines: int = 0
    """Lines of the document that were not; 0 if it was whole."""


class Retrieval(Record):
    """One search, or one reading of a document, and what it gave."""

    schema_: Literal["kopt.retrieval/1"] = Field(default="kopt.retrieval/1", alias="schema")
    time_us: int
    """Unix microseconds."""
    asked_by: str
    """The face that was asked and its caller, e.g. `kopt docs search`."""
    query: str | None = None
    """None: a document was read by its uid."""
    filters: dict[str, str | int]
    """What was asked for besides, as far as it was not left to its default."""
    without: tuple[str, ...]
    """Sources that were hidden, by the call or by KOPT_WITHOUT_SOURCES."""
    backend: str = "embedded"
    degraded: str | None = None
    hits: tuple[RetrievedText, ...]
    """Best first."""
    further: tuple[str, ...] = ()
    """Uids of documents that were named in one line and not quoted."""


def append_retrieval(folder: Path, retrieval: Retrieval) -> None:
    """Append `retrieval` to the log of the run in `folder`, whole or not at all.

    Raises:
        SetupError: It cannot be written.
    """
    path = folder / FILE_NAME
    line = f"{retrieval.model_dump_json(by_alias=True)}\n".encode()
    try:
        with file_lock(path) as log:
            _write_whole(log.descriptor, line, _end_of_whole_lines(log.descriptor))
    except OSError as error:
        raise SetupError(
            f"what was retrieved cannot be logged in {path}, so it is not shown: {error.strerror}"
        ) from error


def read_retrievals(folder: Path) -> tuple[Retrieval, ...]:
    """Return what was retrieved for the run in `folder`, oldest first.

    The beginning of a line, which a killed process left, is no retrieval: its answer was not
    handed out.
    """
    try:
        lines = (folder / FILE_NAME).read_bytes().split(b"\n")
    except FileNotFoundError:
        return ()
    found: list[Retrieval] = []
    for line in lines[:-1]:
        try:
            found.append(Retrieval.model_validate_json(line))
        except ValidationError as error:
            where = f"line {len(found) + 1} of {folder / FILE_NAME}"
            raise SetupError(f"{where} is no retrieval of this kopt: damaged, or newer") from error
    return tuple(found)


def _end_of_whole_lines(descriptor: int) -> int:
    """Return where the next line begins: after the last whole one."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    return os.pread(descriptor, size, 0).rfind(b"\n") + 1


def _write_whole(descriptor: int, line: bytes, begin: int) -> None:
    """Write `line` at `begin`, sync it, and leave nothing of it behind where that fails."""
    os.ftruncate(descriptor, begin)
    try:
        written = 0
        while written < len(line):
            written += os.pwrite(descriptor, line[written:], begin + written)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, begin)
        raise
