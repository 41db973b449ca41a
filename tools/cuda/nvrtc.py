"""NVRTC, the fast path of sweeps: mostly the same SASS as nvcc, in a fifth of the time.

It has few of the host's headers (`host_headers.py`) and other texts for errors, so that whatever it
does not compile goes to nvcc, which decides. A failure is never reported from here. What it spills
goes to nvcc, too, which may find the registers where NVRTC of the same release does not, and whose
build a promotion takes. Measured: by 13.2.86 the machine code of all shipped kernels is equal; by
13.0.88 a kernel bounded to 32 registers spills 16 bytes here and none with nvcc (docs/results.md).

One sandboxed process (`nvrtc_child.py`) stays warm between compiles: it lives as long as this
process, is started again if it ends, and serves any number of threads at once. Requests and answers
go through FIFOs in its only writable folder, because a sandboxed process has no network and no
standard input.
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
from functools import lru_cache
from pathlib import Path

from kopt.config.errors import InfraError, KoptError
from kopt.config.files import ensure_folder
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxLevel, SandboxPolicy, compiler_memory_bytes

from .compile_job import CompileContext, CompileJob, CompilerRun
from .compiler_log import parse_ptxas_report
from .host_headers import host_header_root
from .include_tree import include_root

_SCRIPT = Path(__file__).with_name("nvrtc_child.py")
_LIFETIME_S = 24 * 3600.0
_START_S = 20.0
_POLL_S = 0.2
_CUBIN_LIMIT_BYTES = 64 << 20


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
        self._inodes = _inodes(readable)
        self._settings = settings
        self.level: SandboxLevel = available_level(settings)
        work = ensure_folder(settings.cubin_cache.absolute() / "work")
        self.folder = Path(tempfile.mkdtemp(dir=work, prefix=f"nvrtc-{os.getpid()}-"))
        os.mkfifo(self.folder / "requests")
        # Opened for both directions so that it never blocks; the child sees its end when we end.
        self._requests = os.open(self.folder / "requests", os.O_RDWR | os.O_CLOEXEC)
        self._start_lock = threading.Lock()  # of `_thread`
        self._thread: threading.Thread | None = None
        self._failure: KoptError | OSError | None = None
        self.close = weakref.finalize(self, _dispose, self._requests, self.folder)

    def reaches(self, readable: tuple[Path, ...]) -> bool:
        """Return whether its process still has its folders: a cache may be deleted by hand.

        It may read those that were there when it began, not others that have taken their names.
        """
        return self.folder.exists() and _inodes(readable) == self._inodes

    def compile(self, text: str, options: list[str], wall_s: float) -> CompilerRun:
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
            return CompilerRun(
                returncode=-1 if status is None else status,
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
            memory_bytes=compiler_memory_bytes(),
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


def _inodes(folders: tuple[Path, ...]) -> tuple[int, ...]:
    return tuple(folder.stat().st_ino if folder.exists() else 0 for folder in folders)


def _dispose(requests: int, folder: Path) -> None:
    os.close(requests)
    shutil.rmtree(folder, ignore_errors=True)


# <cooperative_groups.h> otherwise brings all of libcu++ for atomics that few groups need, and takes
# 0.7 s of CPU instead of 0.04. What does need them goes to nvcc. Source: its details/info.h.
_GROUPS_ALONE = "-D_CG_LIMIT_INCLUDED_DEPENDENCIES"


def run_nvrtc(job: CompileJob, context: CompileContext) -> CompilerRun | None:
    """Compile `job` in the warm NVRTC process; None where that is nvcc's to do.

    Raises:
        SetupError: The sandbox cannot start.
        InfraError: The process ended under the compile.
    """
    toolchain, settings = context.toolchain, context.settings
    if toolchain.nvrtc is None:
        return None
    folders = (
        include_root(settings),
        host_header_root(settings),
        toolchain.root / "include",
        toolchain.root / "include" / "cccl",
    )
    service = nvrtc_service(toolchain.nvrtc, folders, settings)
    if not service.reaches(folders):
        nvrtc_service.cache_clear()  # the old one ends when nobody waits for it
        service = nvrtc_service(toolchain.nvrtc, folders, settings)
    options = nvrtc_options(job, [str(folder) for folder in folders])
    run = service.compile(job.text, options, context.wall_s)
    if run.cubin is None and not run.timed_out:
        return None
    if any(kernel.spill_store_bytes for kernel in parse_ptxas_report(run.log).values()):
        return None
    return run


def nvrtc_options(job: CompileJob, folders: list[str]) -> list[str]:
    """Return NVRTC's spelling of the flags that nvcc gets."""
    return [
        f"-arch={job.arch}",
        "-std=c++20",
        _GROUPS_ALONE,
        "--pre-include=math.h",
        *(["--use_fast_math"] if job.fast_math else []),
        *([f"--maxrregcount={job.max_registers}"] if job.max_registers is not None else []),
        "--ptxas-options=-v",
        *(f"-I{folder}" for folder in folders),
        *(f"-D{name}={value}" for name, value in sorted(job.defines.items())),
    ]
