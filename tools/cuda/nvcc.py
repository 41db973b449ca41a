"""nvcc as a sandboxed child process: one candidate to one cubin.

The cubin depends on the text, the flags and the compiler, never on a path or the time: the source
has a fixed relative name, there is no line table (it would name folders), and the front end is
given a fixed full path, from which it derives the names of internal symbols. Profilers and
sanitizers get a second cubin with a line table, whose instructions must not differ.
"""

import io
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elftools.elf.elffile import ELFFile

from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy, compiler_memory_bytes

from .compile_job import CompileContext, CompileJob, CompilerRun
from .compiler_log import CANDIDATE_FILE
from .full_disk import refuse_full_disk
from .include_tree import headers_digest, include_root
from .kept_output import kept_output
from .toolchain import FoundToolchain

CUBIN_FILE = "candidate.cubin"
PTX_FILE = "candidate.ptx"
_LOG_LIMIT_BYTES = 1 << 20
_CUBIN_LIMIT_BYTES = 64 << 20


WITH_LINES = ("-lineinfo",)
"""A line table, for tools that name source lines; it names folders and never ships."""
KEEPING_PTX = (*WITH_LINES, "-keep")
"""The PTX is returned too, for the places of ptxas's errors."""


def run_nvcc(job: CompileJob, context: CompileContext, extra: Sequence[str] = ()) -> CompilerRun:
    """Compile `job` in a private folder, which is removed afterwards.

    Args:
        job: What to compile.
        context: By which compiler.
        extra: Nothing for a cubin to use, else `WITH_LINES` or `KEEPING_PTX`.

    Raises:
        SetupError: The sandbox or the compiler cannot start, or the disk is full.
        InfraError: The sandbox was killed from outside.
    """
    command = [*nvcc_command(job, context.toolchain, context.settings), *extra]
    with _ended(job, context, command) as (run, work):
        cubin, ptx = work / CUBIN_FILE, work / PTX_FILE
        succeeded = run.returncode == 0 and not run.timed_out and cubin.is_file()
        log = _readable_log(run.stdout + run.stderr, work, run.dropped_bytes)
        if not succeeded:
            refuse_full_disk(log, work.parent)
        return CompilerRun(
            returncode=run.returncode,
            log=log,
            cubin=cubin.read_bytes() if succeeded else None,
            timed_out=run.timed_out,
            level=run.level,
            elapsed_s=run.elapsed_s,
            ptx=ptx.read_text("utf-8", errors="replace") if ptx.is_file() else None,
        )


def preprocess(job: CompileJob, context: CompileContext) -> str | None:
    """Return what nvcc's preprocessor makes of `job` for the device, with the #define lines.

    None if it fails: the compile stage says why.

    Raises:
        SetupError: The sandbox or the compiler cannot start.
        InfraError: The sandbox was killed from outside.
    """
    command = nvcc_command(job, context.toolchain, context.settings)
    asked = ["-E" if word == "-cubin" else word for word in command]
    with _ended(job, context, [*asked, "-Xcompiler", "-dD"]) as (run, work):
        made = work / CUBIN_FILE
        return made.read_text("utf-8", "replace") if run.returncode == 0 else None


@contextmanager
def _ended(
    job: CompileJob, context: CompileContext, command: Sequence[str | Path]
) -> Generator[tuple[SandboxedRun, Path]]:
    """Run nvcc on `job` in a private folder, which is there for the duration of the block."""
    with tempfile.TemporaryDirectory(
        dir=context.work_folder(), prefix=f"nvcc-{os.getpid()}-"
    ) as scratch:
        work = Path(scratch)
        (work / CANDIDATE_FILE).write_bytes(job.text.encode())
        policy = SandboxPolicy(
            readable=readable_folders(context.toolchain, context.settings),
            writable=(work,),
            wall_s=context.wall_s,
            output_bytes=_LOG_LIMIT_BYTES,
            file_bytes=_CUBIN_LIMIT_BYTES,
            memory_bytes=compiler_memory_bytes(),
        )
        yield run_sandboxed(command, policy, context.settings), work


def nvcc_command(
    job: CompileJob, toolchain: FoundToolchain, settings: Settings
) -> list[str | Path]:
    """Return the command line; it runs in the folder that holds the source."""
    number = job.arch.removeprefix("sm_")
    return [
        toolchain.nvcc,
        "-cubin",
        "-std=c++20",
        "-O3",
        "--expt-relaxed-constexpr",  # std::numeric_limits and its like in device code
        *(["--use_fast_math"] if job.fast_math else []),
        "-gencode",
        f"arch=compute_{number},code=sm_{number}",
        *([f"-maxrregcount={job.max_registers}"] if job.max_registers is not None else []),
        "-Xptxas",
        "-v",
        "-Xcicc",
        "--orig_src_path_name",
        "-Xcicc",
        f"/{CANDIDATE_FILE}",
        "-ccbin",
        toolchain.gxx,
        "-I",
        include_root(settings),
        *(f"-D{name}={value}" for name, value in sorted(job.defines.items())),
        CANDIDATE_FILE,
        "-o",
        CUBIN_FILE,
    ]


def readable_folders(toolchain: FoundToolchain, settings: Settings) -> tuple[Path, ...]:
    """Return what a compiler must read beside the system's own folders."""
    host_compiler = toolchain.gxx.resolve().parent.parent
    folders = [toolchain.root, include_root(settings)]
    if host_compiler != Path("/usr"):
        folders.append(host_compiler)
    return tuple(folders)


def _readable_log(output: bytes, work: Path, dropped_bytes: int) -> str:
    text = output.decode(errors="replace").replace(f"{work}{os.sep}", "")
    if dropped_bytes:
        text += f"\n[{dropped_bytes} bytes of compiler output left out]\n"
    return text


def cubin_with_lines(job: CompileJob, shipped: bytes, context: CompileContext) -> bytes | None:
    """Return a cubin with lines whose instructions are those of `shipped`; None if there is none.

    Args:
        job: What `shipped` was made from.
        shipped: The cubin that is checked, timed and handed out.
        context: Its compiler must be the one that made `shipped`.

    Raises:
        SetupError: The sandbox or the compiler cannot start.
        InfraError: The sandbox was killed from outside.
    """
    toolchain = context.toolchain
    key = job.key(*WITH_LINES, toolchain.version, str(toolchain.gxx), headers_digest())
    lined = kept_output((key,), lambda: run_nvcc(job, context, WITH_LINES).cubin, context.settings)
    if lined is None or _instructions(lined) != _instructions(shipped):
        return None
    return lined


def _instructions(cubin: bytes) -> dict[str, bytes]:
    """The code of each function by its section's name, e.g. `.text.fused_add`."""
    sections = ELFFile(io.BytesIO(cubin)).iter_sections()
    return {one.name: one.data() for one in sections if one.name.startswith(".text")}
