"""Brings a GPU's parts together: the device found, its lock, its workers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kopt.config.settings import Settings

from .device import CudaDevice
from .discovery import FoundGpu, find_gpu, require_worker_modules
from .helper_cubins import helper_cubins
from .messages import StartRequest
from .ticket_lock import TicketLock
from .worker_policy import LIBRARIES, WorkerSpec
from .worker_pool import WorkerPool
from .worker_process import WorkerProcess

ENGINE = "kopt.tools.gpu.worker.cuda_engine:CudaEngine"

GRAPH_ENGINE = "kopt.tools.pytorch.graph_engine:GraphEngine"


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
    lock, graphs = TicketLock(gpu.facts.uuid), graph_pool(gpu.facts.uuid, settings)
    return CudaDevice(gpu, pool, lock, on_wait, graphs=graphs)


def graph_pool(uuid: str, settings: Settings, engine: str = GRAPH_ENGINE) -> WorkerPool:
    """Return the process that runs graphs of oracles on the GPU with this UUID, not started yet."""

    def make(folder: Path | None, library: bool) -> WorkerProcess:
        del folder, library  # a graph reads no file, and torch is the engine's own
        return WorkerProcess(WorkerSpec(engine), settings)

    return WorkerPool(make, lambda: StartRequest(device_uuid=uuid), has_spare=False)


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
