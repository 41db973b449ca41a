"""The files of one job's folder: their names, and how each is read and written.

`request.json` is written once; `progress.json`, `attempts` and the text of `lock` are rewritten;
one of `result.json`, `error.json` and `cancelled` ends the job. Who may write is not decided here.
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.record import Record
from kopt.search.artifacts import write_durably

from .records import JobError, JobRequest, Progress

_LOCK_TEXT_BYTES = 200


@dataclass(frozen=True)
class JobFiles:
    """The folder of one job."""

    folder: Path

    @property
    def request(self) -> Path:
        """What was asked."""
        return self.folder / "request.json"

    @property
    def result(self) -> Path:
        """The stage's document; with it the job is done."""
        return self.folder / "result.json"

    @property
    def error(self) -> Path:
        """Why there is no result; with it the job has failed."""
        return self.folder / "error.json"

    @property
    def cancelled(self) -> Path:
        """Empty; with it the job is cancelled."""
        return self.folder / "cancelled"

    @property
    def cancel_request(self) -> Path:
        """Empty; asks the process that holds the job to cancel it."""
        return self.folder / "cancel_request"

    @property
    def lock(self) -> Path:
        """Held by the process that has the job queued or running."""
        return self.folder / "lock"

    @property
    def log(self) -> Path:
        """The traceback of a bug, the last words of a runner that died."""
        return self.folder / "runner.log"

    @property
    def over_at_s(self) -> float | None:
        """When the job ended, Unix seconds; None as long as it has not."""
        for path in (self.result, self.error, self.cancelled):
            with suppress(FileNotFoundError):
                return path.stat().st_mtime
        return None

    def read_request(self) -> JobRequest:
        """Return what was asked.

        Raises:
            ToolError: Another version of kopt wrote it, in a form that this one cannot read.
        """
        try:
            return JobRequest.model_validate_json(self.request.read_bytes())
        except ValidationError as error:
            raise ToolError(
                f"{self.folder.name} was written by another version of kopt: start the work again"
            ) from error

    def read_result(self) -> dict[str, Any] | None:
        """Return the stage's document once there is one."""
        try:
            document: dict[str, Any] = json.loads(self.result.read_bytes())
        except FileNotFoundError:
            return None
        return document

    def write_result(self, record: Record) -> None:
        """End the job with the record of its stage."""
        write_durably(self.result, record.model_dump_json(by_alias=True).encode())

    def read_error(self) -> JobError | None:
        """Return why the job failed, if it did."""
        try:
            return JobError.model_validate_json(self.error.read_bytes())
        except FileNotFoundError:
            return None

    def write_error(self, error: JobError) -> None:
        """End the job without a result."""
        write_durably(self.error, error.model_dump_json().encode())

    def write_cancelled(self) -> None:
        """End the job because somebody asked for that."""
        write_durably(self.cancelled, b"")

    @property
    def wants_cancel(self) -> bool:
        """Whether another process asked to cancel the job."""
        return self.cancel_request.exists()

    def request_cancel(self) -> None:
        """Ask whoever holds the job to cancel it."""
        self.cancel_request.touch(mode=0o600)

    def read_progress(self) -> Progress | None:
        """Return how far the job is, as far as was written."""
        try:
            return Progress.model_validate_json((self.folder / "progress.json").read_bytes())
        except (FileNotFoundError, ValidationError):  # not written with care: see below
            return None

    def write_progress(self, progress: Progress) -> None:
        """Replace the progress in one step; it is not worth waiting for the disk."""
        temporary = self.folder / ".progress"
        temporary.write_bytes(progress.model_dump_json().encode())
        os.replace(temporary, self.folder / "progress.json")

    def read_attempts(self) -> int:
        """Return how often work was begun."""
        try:
            text = (self.folder / "attempts").read_text("ascii")
        except FileNotFoundError:
            return 0
        return int(text) if text.isdigit() else 0

    def begin_attempt(self) -> int:
        """Count one more attempt, before it begins, and return its number from 1 on."""
        number = self.read_attempts() + 1
        write_durably(self.folder / "attempts", str(number).encode())
        return number

    def read_holder(self) -> tuple[str, bool]:
        """Return what the lock's last holder said of itself, and whether the job was running."""
        try:
            text = self.lock.read_text("utf-8", errors="replace")[:_LOCK_TEXT_BYTES]
        except FileNotFoundError:
            return "", False
        holder, _, state = text.strip().rpartition(" ")
        return holder, state == "running"
