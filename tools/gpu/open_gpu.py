"""Brings a GPU's parts together: the device found, its lock, its workers.

kopt's own kernels for the worker (tools/gpu/worker/*.cu) are compiled here, because a worker has no
compiler. They go through the cache of candidates, so that each is compiled once for a GPU's
architecture.
"""

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compile_unit import compile_unit
from kopt.tools.cuda.toolchain import find_toolchain

from .device import CudaDevice
from .discovery import FoundGpu, find_gpu, require_worker_modules
from .messages import StartRequest
from .ticket_lock import TicketLock
from .worker_policy import LIBRARIES, WorkerSpec
from .worker_pool import WorkerPool
from .worker_process import WorkerProcess

ENGINE = "kopt.tools.gpu.worker.cuda_engine:CudaEngine"


def open_gpu(
    name: str,
    settings: Settings,
    on_wait: Callable[[str], None] | None = None,
    *,
    has_spare: bool = True,
    helpers: Callable[[str], dict[str, str]] | None = None,
) -> CudaDevice:
    """Return the GPU called `name`, with nothing started yet; `close` it.

    Args:
        name: `cuda:0` and so on.
        settings: Of this process.
        on_wait: The device's.
        has_spare: The pool's (`worker_pool.py`).
        helpers: Gives the cubins of kopt's own kernels for an architecture, by name, where they
            come from another machine; None: they are compiled here.

    Raises:
        ToolError: `name` is not of the form `cuda:0`.
        SetupError: There is no such GPU here, or what a worker needs is not installed.
    """
    gpu = find_gpu(name)
    require_worker_modules()
    pool = _pool(gpu, settings, helpers or partial(helper_cubins, settings=settings), has_spare)
    return CudaDevice(gpu, pool, TicketLock(gpu.facts.uuid), on_wait)


def _pool(
    gpu: FoundGpu, settings: Settings, helpers: Callable[[str], dict[str, str]], has_spare: bool
) -> WorkerPool:
    # FlashInfer would ask torch for it while it is imported, which creates a context.
    environment = (("FLASHINFER_CUDA_ARCH_LIST", _torch_arch(gpu.facts.compute_capability)),)

    def make(folder: Path | None, library: bool) -> WorkerProcess:
        preload = LIBRARIES if library else ()
        readable = () if folder is None else (folder,)
        return WorkerProcess(WorkerSpec(ENGINE, preload, readable, environment), settings)

    def start() -> StartRequest:
        return StartRequest(device_uuid=gpu.facts.uuid, helper_cubins=helpers(gpu.facts.arch))

    return WorkerPool(make, start, has_spare=has_spare)


def _torch_arch(compute_capability: tuple[int, int]) -> str:
    """Return `9.0a`: architectures from 9.0 on have instructions that only their own code has."""
    major, minor = compute_capability
    return f"{major}.{minor}{'a' if major >= 9 else ''}"


def helper_cubins(arch: str, settings: Settings) -> dict[str, str]:
    """Return the path of each helper's cubin by the name of its source, `late_producer` and so on.

    Raises:
        SetupError: No compiler, no sandbox, or a cache folder that cannot be written.
        InfraError: A helper does not compile for `arch`.
    """
    context = CompileContext("nvcc", find_toolchain(settings), settings)
    folder = files("kopt.tools.gpu.worker")
    sources = {
        Path(entry.name).stem: entry.read_text("utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".cu")
    }
    return {name: str(_cubin(name, source, arch, context)) for name, source in sources.items()}


def _cubin(name: str, source: str, arch: str, context: CompileContext) -> Path:
    outcome = compile_unit(CompileJob(source, plan_assertions="", arch=arch), context)
    if outcome.unit.status is not Status.PASSED or outcome.entry is None:
        said = "; ".join(diagnostic.message for diagnostic in outcome.unit.diagnostics)
        raise InfraError(f"{name}.cu does not compile for {arch}: {said or outcome.unit.status}")
    return outcome.entry.cubin_path
