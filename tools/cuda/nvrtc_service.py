"""The parent's end of `nvrtc_child.py`: one sandboxed process that stays warm between compiles.

It lives as long as this process, is started again if it ends, and serves any number of threads at
once. Requests and answers go through FIFOs in its only writable folder, because a sandboxed
process has no network and no standard input.
"""

import json
import os
import select
import shutil
import sys
import tempfile
import threading
import time
import weakref
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kopt.config.errors import InfraError, KoptError
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxLevel, SandboxPolicy

_SCRIPT = Path(__file__).with_name("nvrtc_child.py")
_LIFETIME_S = 24 * 3600.0
_START_S = 20.0
_POLL_S = 0.2
_CUBIN_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True)
class NvrtcAnswer:
    """How one compile ended."""

    status: int | None
    """NVRTC's status, 0 for success; None if the compile died."""
    timed_out: bool
    log: str
    cubin: bytes | None
    level: SandboxLevel
    elapsed_s: float


class NvrtcService:
    """One warm process for one libnvrtc and one set of include folders."""

    def __init__(self, library: Path, readable: tuple[Path, ...], settings: Settings) -> None:
        self._command: list[str | Path] = [
            Path(sys.executable).resolve(),
            "-I",
            "-S",
            _SCRIPT,
            library,
        ]
        self._readable = (
            Path(sys.base_prefix).resolve(),
            _SCRIPT.parent,
            library.parent.resolve(),
            *readable,
        )
        self._settings = settings
        self.level: SandboxLevel = available_level(settings)
        work = ensure_folder(settings.cubin_cache.absolute() / "work")
        self.folder = Path(tempfile.mkdtemp(dir=work, prefix="nvrtc-"))
        os.mkfifo(self.folder / "requests")
        # Opened for both directions so that it never blocks; the child sees its end when we end.
        self._requests = os.open(self.folder / "requests", os.O_RDWR | os.O_CLOEXEC)
        self._start_lock = threading.Lock()  # of `_thread`
        self._thread: threading.Thread | None = None
        self._failure: KoptError | OSError | None = None
        self.close = weakref.finalize(self, _dispose, self._requests, self.folder)

    def compile(self, text: str, options: list[str], wall_s: float) -> NvrtcAnswer:
        """Return the outcome of one compile; any number of threads may call at once.

        Raises:
            SetupError: The sandbox cannot start.
            InfraError: The process ended under the request.
        """
        self._ensure_running()
        started = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="job-") as scratch:
            job = Path(scratch)
            (job / "candidate.cu").write_bytes(text.encode())
            request = {"options": options, "wall_s": wall_s}
            (job / "options.json").write_text(json.dumps(request), "utf-8")
            os.mkfifo(job / "done")
            done = os.open(job / "done", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(self._requests, f"{job.name}\n".encode())
                line = self._wait(done, started + wall_s + _START_S)
            finally:
                os.close(done)
            log, cubin = job / "compiler.log", job / "candidate.cubin"
            status = int(line) if line else None
            elapsed_s = time.monotonic() - started
            return NvrtcAnswer(
                status=status,
                timed_out=status is None and elapsed_s >= wall_s,
                log=log.read_text("utf-8", errors="replace") if log.is_file() else "",
                cubin=cubin.read_bytes() if status == 0 else None,
                level=self.level,
                elapsed_s=elapsed_s,
            )

    def _wait(self, done: int, deadline: float) -> bytes:
        """Return what the fork wrote before it closed its end; nothing if it was ended."""
        poller = select.poll()
        poller.register(done, select.POLLIN | select.POLLHUP)
        received = b""
        while time.monotonic() < deadline:
            if poller.poll(_POLL_S * 1000):
                chunk = os.read(done, 64)
                if not chunk:  # the writer was there and is gone
                    return received
                received += chunk
            elif self._thread is None or not self._thread.is_alive():
                raise self._failure or InfraError("the NVRTC process ended under a compile")
        raise InfraError("the NVRTC process did not answer")

    def _ensure_running(self) -> None:
        with self._start_lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._run, name="nvrtc", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        policy = SandboxPolicy(
            readable=self._readable,
            writable=(self.folder,),
            wall_s=_LIFETIME_S,
            file_bytes=_CUBIN_LIMIT_BYTES,
            allow_exec=False,
        )
        try:
            run_sandboxed(self._command, policy, self._settings)
        except (KoptError, OSError) as error:  # raised to those who wait: a thread has no caller
            self._failure = error


@lru_cache
def nvrtc_service(library: Path, readable: tuple[Path, ...], settings: Settings) -> NvrtcService:
    """Return this process's service for a library; it starts with the first compile."""
    return NvrtcService(library, readable, settings)


def _dispose(requests: int, folder: Path) -> None:
    os.close(requests)
    shutil.rmtree(folder, ignore_errors=True)
