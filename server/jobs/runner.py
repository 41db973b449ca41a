"""A runner: the child process of a server that does jobs, one after the other.

The result is written here, durably, before the server is told: it is not lost with the server. The
runner ends with its server's end of the pipe, and `guard.py` kills it should that not suffice.
"""

import os
import queue
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from typing import NoReturn, TextIO

from kopt.config.home_use import deleted_caches_told, using_home
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.server.exits import failure_of
from kopt.server.work.perform import perform
from kopt.server.work.work_site import WarmDevices, WorkSite

from .job_files import JobFiles
from .job_store import JobStore
from .records import (
    JobError,
    OverEvent,
    Progress,
    ProgressEvent,
    RunnerStart,
    job_error,
)

IDLE_S = 60.0
"""Time without work after which the devices are closed: no GPU memory is held for nothing."""


class _Teller:
    """Passes progress on, and keeps it from ever falling, also from one attempt to the next."""

    def __init__(self, files: JobFiles, server: TextIO) -> None:
        self._files = files
        self._server = server
        before = files.read_progress()
        self._base = self._last = 0.0 if before is None else before.done
        self._lock = threading.Lock()  # of the pipe and the file: evaluations tell from threads

    def say(self, progress: Progress) -> None:
        with self._lock:
            self._say(progress)

    def _say(self, progress: Progress) -> None:
        self._last = max(self._last, self._base + progress.done)
        total = None if progress.total is None else max(self._base + progress.total, self._last)
        told = Progress(
            done=self._last, total=total, message=progress.message, at_us=time.time_ns() // 1000
        )
        _send(self._server, ProgressEvent(progress=told))
        with suppress(OSError):  # a full disk will stop the work itself, if it has to
            self._files.write_progress(told)


def main() -> None:
    """Do what the server asks for until it hangs up."""
    server = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # prints must not garble the pipe
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read_commands, args=(lines,), name="commands", daemon=True).start()
    settings = RunnerStart.model_validate_json(lines.get()).settings
    devices = WarmDevices(settings)
    with using_home(settings.home):
        _serve(server, lines, settings, devices)


def _serve(
    server: TextIO,
    lines: "queue.SimpleQueue[bytes]",
    settings: Settings,
    devices: WarmDevices,
) -> NoReturn:
    """Do one job after the other."""
    while True:
        try:
            line = lines.get(timeout=None if devices.is_empty else IDLE_S)
        except queue.Empty:
            devices.close()
            continue
        job_id = line.decode().strip()
        _send(server, OverEvent(error=_do(job_id, settings, devices, server)))


def _do(job_id: str, settings: Settings, devices: WarmDevices, server: TextIO) -> JobError | None:
    """Do one job, write how it ended into its folder, and return why it failed, if it did."""
    files = JobStore(settings.jobs_folder).files(job_id)
    try:
        files.begin_attempt()  # not by the server: one that leaves at once has begun nothing
        teller = _Teller(files, server)
        request = files.read_request()
        site = WorkSite(settings, job_id, teller.say, devices, request.owner)
        with deleted_caches_told(settings.home):
            record = perform(request.work, site)
        files.write_result(record)
    except Exception as error:  # the outermost frame of a job: it ends, the runner does not
        found = _found(error, files)
        with suppress(OSError):  # a full disk: the server is told, and it remembers
            files.write_error(found)
        return found
    return None


def _send(server: TextIO, event: Record) -> None:
    """Send one line; without a server this process ends."""
    try:
        server.write(event.model_dump_json() + "\n")
        server.flush()
    except BrokenPipeError:
        raise SystemExit(1) from None


def _found(error: Exception, files: JobFiles) -> JobError:
    """Return the job's error; the traceback of a bug goes into its log."""
    found = job_error(failure_of(error))
    if found.kind != "bug":
        return found
    with suppress(OSError):
        files.log.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    hint = f"This is a bug in kopt: please report it with the traceback in {files.log}."
    return found.model_copy(update={"hint": hint})


def _read_commands(lines: "queue.SimpleQueue[bytes]") -> None:
    """Pass the server's lines on; its end, or its hanging up, ends this process and its group."""
    for line in sys.stdin.buffer:
        lines.put(line)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
