"""The files of one job's folder: their names, and how each is read and written.

`request.json` is written once; `progress.json`, `attempts`, `excused` and the text of `lock` are
rewritten; one of `result.json`, `error.json` and `cancelled` ends the job. Who may write is not
decided here.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from kopt.config.errors import InfraError, ToolError
from kopt.config.files import write_atomically
from kopt.kernels.record import Record

from .records import JobError, JobRequest, Progress

_LOCK_TEXT_BYTES = 200
_DIGITS = 6


class JobFiles:
    """The folder of one job."""

    def __init__(self, folder: Path) -> None:
        """Name the files of `folder`; nothing is read."""
        self.folder = folder
        self.request = folder / "request.json"
        self.result = folder / "result.json"
        """The stage's document; with it the job is done."""
        self.error = folder / "error.json"
        """The reason for no result; with it the job has failed."""
        self.cancelled = folder / "cancelled"
        """Empty; with it the job is cancelled."""
        self.cancel_request = folder / "cancel_request"
        """Empty; another process has asked the holder of the job to cancel it."""
        self.lock = folder / "lock"
        """Held by the process that has the job queued or running."""
        self.log = folder / "runner.log"
        """The traceback of a bug, the last words of a runner that died."""

    @property
    def over_at_s(self) -> float | None:
        """When the job ended, Unix seconds; None as long as it has not."""
        for path in (self.result, self.error, self.cancelled):
            with suppress(FileNotFoundError):
                return path.stat().st_mtime
        return None

    def read_request(self) -> JobRequest:
        """Return the request of the job.

        Raises:
            ToolError: Another version of kopt wrote it, in a form that this one cannot read.
            InfraError: The file is damaged.
        """
        data = self.request.read_bytes()
        try:
            return JobRequest.model_validate_json(data)
        except ValidationError as error:
            if _object(data):
                raise ToolError(
                    f"{self.folder.name} was written by another version of kopt: start the work"
                    " again"
                ) from error
            raise InfraError(f"{self.request} is damaged: start the work again") from error

    def read_end(self) -> tuple[dict[str, Any] | None, JobError | None]:
        """Return the stage's document, or else why there is none; neither as long as none is.

        A job that has ended stays so: a document that cannot be read makes it a failed one.
        """
        with suppress(FileNotFoundError):
            document = _object(self.result.read_bytes())
            return (document, None) if document else (None, _damage(self.result))
        return None, self._read_error()

    def write_result(self, record: Record) -> None:
        """End the job with the record of its stage."""
        write_atomically(self.result, record.model_dump_json(by_alias=True))

    def _read_error(self) -> JobError | None:
        try:
            return JobError.model_validate_json(self.error.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError:
            return _damage(self.error)

    def write_error(self, error: JobError) -> None:
        """End the job without a result."""
        write_atomically(self.error, error.model_dump_json())

    def write_cancelled(self) -> None:
        """End the job as cancelled."""
        write_atomically(self.cancelled, b"")

    def read_progress(self) -> Progress | None:
        """Return how far the job is, as far as was written."""
        try:
            return Progress.model_validate_json((self.folder / "progress.json").read_bytes())
        except (FileNotFoundError, ValidationError):  # not written with care: see below
            return None

    def write_progress(self, progress: Progress) -> None:
        """Replace the progress in one step; it is not worth waiting for the disk."""
        write_atomically(self.folder / "progress.json", progress.model_dump_json(), durable=False)

    def read_attempts(self) -> int:
        """Return how often work was begun."""
        return self._read_number("attempts")

    def read_counted_attempts(self) -> int:
        """Return how often work was begun, less the times that a server ended it on purpose."""
        return self.read_attempts() - self._read_number("excused")

    def begin_attempt(self) -> int:
        """Count one more attempt, before it begins, and return its number from 1 on."""
        number = self.read_attempts() + 1
        write_atomically(self.folder / "attempts", str(number))
        return number

    def excuse_attempt(self) -> None:
        """Let the last attempt not count; in one step, and not worth waiting for the disk."""
        number = self._read_number("excused") + 1
        write_atomically(self.folder / "excused", str(number), durable=False)

    def read_holder(self) -> tuple[str, bool]:
        """Return what the lock's last holder said of itself, and whether the job was running."""
        try:
            text = self.lock.read_text("utf-8", errors="replace")[:_LOCK_TEXT_BYTES]
        except FileNotFoundError:
            return "", False
        holder, _, state = text.strip().rpartition(" ")
        return holder, state == "running"

    def _read_number(self, name: str) -> int:
        try:
            text = (self.folder / name).read_text("ascii", errors="replace")
        except FileNotFoundError:
            return 0
        return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0


def _object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that `data` is; empty if it is none, or damaged."""
    try:
        document: Any = json.loads(data)
    except (ValueError, RecursionError):  # of the text or its encoding; too deep to be one of ours
        return {}
    return cast(dict[str, Any], document) if isinstance(document, dict) else {}


def _damage(path: Path) -> JobError:
    return JobError(
        kind="machine",
        message=f"the job has ended, and {path} is damaged",
        hint="Was the disk full, or the file edited? Start the work again.",
    )
