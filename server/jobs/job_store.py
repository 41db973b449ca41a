"""The jobs of a KOPT_HOME: a folder each, any number of processes at once.

A `flock` on a job's `lock` makes one process the one that works on it; the kernel drops it with
that process, so that a job with a free lock and no end is an orphan, for the next to take.
"""

import os
import re
import secrets
import shutil
import stat
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.config.files import (
    TEMPORARY_PREFIX,
    ensure_folder,
    publish_folder,
    staging_folder,
    write_atomically,
)
from kopt.config.folder_owner import LOCAL_OWNER
from kopt.config.locks import FileLock, is_locked, try_lock
from kopt.server.work.requests import Work

from .job_files import JobFiles
from .records import JobNeeds, JobRequest, JobState, JobView

JOB_ID = re.compile(r"job-\d{8}-\d{6}-[0-9a-f]{8}")
RESUMED_WITHIN_S = 24 * 3600.0
"""A server takes up orphans of the last day; older ones only when asked for by their id."""
KEPT_S = 7 * 24 * 3600.0
_NO_NEEDS = JobNeeds()


@dataclass(frozen=True)
class JobClaim:
    """A job that this process holds, until `release` or its end."""

    request: JobRequest
    files: JobFiles
    lock: FileLock

    def tell(self, running: bool) -> None:
        """Say in the lock who holds the job and whether it runs: for people and other servers."""
        self.lock.describe(f"process {os.getpid()} {'running' if running else 'queued'}\n")

    def release(self) -> None:
        """Let the job go; one that is not over is then an orphan."""
        self.lock.release()


class JobStore:
    """The folder `KOPT_HOME/jobs`."""

    def __init__(self, root: Path) -> None:
        """Name the folder; nothing is read or created."""
        self._root = root

    def create(
        self, work: Work, caller: str, needs: JobNeeds = _NO_NEEDS, owner: str = ""
    ) -> JobClaim:
        """Return a new job, on the disk for good, held by this process.

        Args:
            work: The work to do.
            caller: The caller's name.
            needs: The means that its server must have.
            owner: Who alone may be told of it beside the local owner, who is "".

        Raises:
            ToolError: The work holds text that is not Unicode.
            SetupError: KOPT_HOME is full or cannot be written.
        """
        now = datetime.now(UTC)
        request = JobRequest(
            id=f"job-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}",
            work=work,
            caller=caller,
            owner=owner,
            created_us=int(now.timestamp() * 1e6),
            needs=needs,
        )
        try:
            data = request.model_dump_json().encode()
        except ValueError as error:  # a lone surrogate, which no JSON document can hold
            raise ToolError(f"the work is not Unicode text: {error}") from error
        ensure_folder(self._root)
        try:
            return self._create(request, data)
        except OSError as error:
            raise SetupError(
                f"cannot write a job to {self._root}: {error.strerror}; free some space there, or"
                " set KOPT_HOME to another folder"
            ) from error

    def files(self, job_id: str) -> JobFiles:
        """Return the files of a job that exists.

        Raises:
            ToolError: There is no such job.
        """
        if JOB_ID.fullmatch(job_id):
            files = JobFiles(self._root / job_id)
            with suppress(OSError):  # another user's folder
                if stat.S_ISREG(files.request.stat().st_mode):
                    return files
        raise unknown_job(job_id)

    def claim(self, job_id: str) -> JobClaim | None:
        """Take the job if it is free and not over; None otherwise.

        Raises:
            ToolError: There is no such job.
        """
        files = self.files(job_id)
        lock = try_lock(files.lock)
        if lock is None:
            return None
        try:
            if files.over_at_s is None:
                return JobClaim(files.read_request(), files, lock)
        except BaseException:
            lock.release()
            raise
        lock.release()
        return None

    def request_cancel(self, job_id: str) -> None:
        """Ask the process that holds a job to cancel it.

        Raises:
            ToolError: There is no such job.
            SetupError: KOPT_HOME cannot be written.
        """
        files = self.files(job_id)
        try:
            files.cancel_request.touch(mode=0o600)
        except OSError as error:
            raise SetupError(f"cannot write to {files.folder}: {error.strerror}") from error

    def view(self, job_id: str) -> JobView:
        """Return a job as its files say.

        Raises:
            ToolError: There is no such job.
            SetupError: Its files cannot be read.
            InfraError: What it was asked to do is damaged.
        """
        files = self.files(job_id)
        try:
            return _view(files)
        except OSError as error:
            raise SetupError(f"cannot read {files.folder}: {error.strerror}") from error

    def orphans(self) -> list[str]:
        """Return the ids of young jobs that are neither over nor held, oldest first."""
        oldest = time.time() - RESUMED_WITHIN_S
        found: list[str] = []
        for name in self._ids():
            files = JobFiles(self._root / name)
            with suppress(OSError):  # not a folder, or another user's: the others count
                if (
                    _created_s(files) > oldest
                    and files.over_at_s is None
                    and not is_locked(files.lock)
                ):
                    found.append(name)
        return found

    def newest(self, owner: str, most: int) -> list[str]:
        """Return the ids of the newest jobs that `owner` may see, newest first."""
        found: list[JobRequest] = []
        for name in reversed(self._ids()):
            if found and len(found) >= most and _second_of(name) != _second_of(found[-1].id):
                break
            with suppress(KoptError, OSError):  # damaged: nothing says whose it is
                request = JobFiles(self._root / name).read_request()
                if owner in (LOCAL_OWNER, request.owner):
                    found.append(request)
        found.sort(key=lambda request: request.created_us, reverse=True)
        return [request.id for request in found[:most]]

    def sweep(self) -> int:
        """Remove jobs that ended, or were abandoned, more than 7 days ago; return their number."""
        oldest = time.time() - KEPT_S
        swept = 0
        for name in self._ids():
            files = JobFiles(self._root / name)
            with suppress(OSError):  # not a folder, or another user's: the others are swept
                if (files.over_at_s or _created_s(files)) < oldest and not is_locked(files.lock):
                    shutil.rmtree(files.folder, ignore_errors=True)
                    swept += 1
        # Made by processes that were killed before the rename.
        for folder in self._root.glob(f"{TEMPORARY_PREFIX}*"):
            with suppress(OSError):
                if folder.stat().st_mtime < oldest:
                    shutil.rmtree(folder, ignore_errors=True)
        return swept

    def _ids(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._root) if JOB_ID.fullmatch(name))
        except FileNotFoundError:
            return []

    def _create(self, request: JobRequest, data: bytes) -> JobClaim:
        """Write the job beside its place and move it there: it exists whole, and held, or not."""
        files = JobFiles(self._root / request.id)
        with staging_folder(files.folder) as new:
            write_atomically(JobFiles(new).request, data)
            lock = try_lock(JobFiles(new).lock)
            if lock is None:
                raise AssertionError("no other process knows this folder")
            claim = JobClaim(request, files, lock)
            try:
                claim.tell(running=False)
                publish_folder(new, files.folder, durable=True)
            except BaseException:
                claim.release()
                raise
        return claim


def unknown_job(job_id: str) -> ToolError:
    """Return what to raise for an id that is no job's, or none that the caller may know of."""
    return ToolError(
        f"no job {job_id!r}: ids look like job-20260131-120000-0123abcd, as the tool that"
        " started the job returned it, and are kept for 7 days; start the work again"
    )


def _view(files: JobFiles) -> JobView:
    is_held = is_locked(files.lock)  # looked at first: a holder ends its job, then lets go
    holder, running = files.read_holder()
    result, error = files.read_end()
    state: JobState = "running" if is_held and running else "queued"
    if result is not None:
        state = "done"
    elif error is not None:
        state = "failed"
    elif files.cancelled.exists():
        state = "cancelled"
    is_over = state in ("done", "failed", "cancelled")
    return JobView(
        request=files.read_request(),
        state=state,
        progress=files.read_progress(),
        result=result,
        error=error,
        holder=holder if is_held and not is_over else None,
        attempts=files.read_attempts(),
    )


def _second_of(job_id: str) -> str:
    """Return the second of a job's creation as its id has it; within one, ids are in no order."""
    return job_id.rsplit("-", 1)[0]


def _created_s(files: JobFiles) -> float:
    """Return when a job's request was written, Unix seconds: once, first; 0 if it is gone."""
    try:
        return files.request.stat().st_mtime
    except FileNotFoundError:
        return 0.0
