"""Evaluators of a pool whose GPUs are played by workers in their sandbox (`scripted_gpu.py`).

Run as a module it is the process that speaks to Ray, with them in the place of real ones. Each
actor writes a line to `calls.log` in its home for every execution that it begins; a candidate whose
source says `poison` kills its actor.
"""

import os
import signal
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from kopt.config.gpu_specs import load_gpus
from kopt.config.pool_address import PoolKind
from kopt.config.settings import Settings, settings_from_environment
from kopt.server.far.desk import Helpers
from kopt.server.pool import cluster, relay
from kopt.server.pool.evaluator import Held, PoolSeat
from kopt.server.pool.packed_arrays import Form
from kopt.tools.devices.device import Device
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.gpu.messages import StartRequest
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.gpu.worker_policy import WorkerSpec
from kopt.tools.gpu.worker_pool import WorkerPool
from kopt.tools.gpu.worker_process import WorkerProcess
from kopt.tools.remote import ssh_client
from kopt.tools.remote.calls import CALL, ExecuteCall, LibraryCall
from support.bench_results import H100
from support.scripted_gpu import ENGINE

MODULE = "support.pool_twin"
LOG = "calls.log"
POISON = "poison"


class TwinSeat(PoolSeat):
    """An actor whose GPU is a twin, with the number that Ray has given to it."""

    def __init__(self, home: str, kind: PoolKind, jobs: int) -> None:
        """Open the twin."""
        self._log = Path(home, LOG)
        super().__init__(home, kind, jobs, None if kind == "sim" else _open_twin)

    def answer(
        self, held: Held, call: bytes, forms: Sequence[Form], *contents: npt.NDArray[np.uint8]
    ) -> dict[str, Any] | None:
        """Note an execution, die of a poison, or answer as any evaluator does."""
        asked = CALL.validate_json(call)
        if isinstance(asked, ExecuteCall | LibraryCall):
            with self._log.open("a") as log:
                log.write(f"{asked.errand}\n")
        if isinstance(asked, ExecuteCall) and POISON in asked.program.source:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().answer(held, call, forms, *contents)


def _open_twin(
    name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
) -> Device:
    assert (name, has_spare) == ("cuda:0", True)  # which would be a process more to start
    settings = settings_from_environment()
    facts = H100.model_copy(update={"uuid": _uuid()})

    def start() -> StartRequest:
        assert helpers(facts.arch)  # what kopt has compiled for this GPU has come
        return StartRequest(device_uuid=facts.uuid)

    pool = WorkerPool(_worker_maker(settings), start, has_spare=False)
    lock = TicketLock(facts.uuid, settings.home / "locks")
    return CudaDevice(FoundGpu(facts, load_gpus()["H100"]), pool, lock, told)


def _worker_maker(settings: Settings) -> Callable[[Path | None, bool], WorkerProcess]:
    def make(folder: Path | None, library: bool) -> WorkerProcess:
        del library
        readable = () if folder is None else (folder,)
        return WorkerProcess(WorkerSpec(ENGINE, (), readable), settings)

    return make


def _uuid() -> str:
    """Return the name of the GPU that Ray has given to this actor: node and number."""
    node = import_module("ray").get_runtime_context().get_node_id()
    return f"GPU-{node[:12]}-{os.environ['CUDA_VISIBLE_DEVICES']}"


if __name__ == "__main__":
    cluster.EVALUATOR = f"{MODULE}:{TwinSeat.__name__}"
    only_base = ssh_client.needed_modules("sim")
    with (
        patch.object(cluster, "POOL", "twins-"),
        patch.object(cluster, "needed_modules", return_value=only_base),
    ):
        relay.enter()
