"""NVRTC, the fast path of sweeps: mostly the same SASS as nvcc, in a fifth of the time.

It has no host headers and other texts for errors, so that whatever it does not compile goes to
nvcc, which decides. A failure is never reported from here. What it spills goes to nvcc, too, which
may find the registers where NVRTC of the same release does not, and whose build a promotion takes.
Measured: by 13.2.86 the machine code of all shipped kernels is equal; by 13.0.88 a kernel bounded
to 32 registers spills 16 bytes here and none with nvcc (docs/results.md).
"""

from .compile_job import CompileContext, CompileJob, CompilerRun
from .include_tree import include_root
from .nvrtc_headers import host_header_root
from .nvrtc_service import nvrtc_service
from .ptxas_report import parse_ptxas_report

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
    options = nvrtc_options(job, [str(folder) for folder in folders])
    answer = service.compile(job.text, options, context.wall_s)
    if answer.cubin is None and not answer.timed_out:
        return None
    if any(kernel.spill_store_bytes for kernel in parse_ptxas_report(answer.log).values()):
        return None
    return CompilerRun(
        returncode=0 if answer.cubin is not None else -1,
        log=answer.log,
        cubin=answer.cubin,
        timed_out=answer.timed_out,
        level=answer.level,
        elapsed_s=answer.elapsed_s,
    )


def nvrtc_options(job: CompileJob, folders: list[str]) -> list[str]:
    """Return NVRTC's spelling of the flags that nvcc gets."""
    return [
        f"-arch={job.arch}",
        "-std=c++17",
        _GROUPS_ALONE,
        *(["--use_fast_math"] if job.fast_math else []),
        *([f"--maxrregcount={job.max_registers}"] if job.max_registers is not None else []),
        "--ptxas-options=-v",
        *(f"-I{folder}" for folder in folders),
        *(f"-D{name}={value}" for name, value in sorted(job.defines.items())),
    ]
