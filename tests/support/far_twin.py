"""The Python of another machine whose GPU is a twin, or workers that play one.

The twin is the simulator with scripted times.

It is called as Python is, `-c CODE ARGUMENT...`, and runs the code after it has put the twin in the
GPU's place.
"""

import importlib.util
import pickle
import random
import stat
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Literal

from kopt.config.files import content_hash
from kopt.config.gpu_specs import load_gpus
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.kernels.plan import LaunchPlan
from kopt.server.far import service
from kopt.server.far.desk import Helpers, OpenHere
from kopt.tools.devices.device import Arrays, Device
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.gpu.messages import StartRequest
from kopt.tools.gpu.ticket_lock import TicketLock
from kopt.tools.gpu.worker_policy import WorkerSpec
from kopt.tools.gpu.worker_pool import WorkerPool
from kopt.tools.gpu.worker_process import WorkerProcess
from support.bench_results import H100
from support.scripted_gpu import ENGINE
from support.sim_timer import SimTimer

_BINDINGS = ("cuda.bindings", "pynvml")


def wide_blocks_are_faster(plan: LaunchPlan) -> float:
    """Return microseconds: 6 with blocks of 128 threads, else 5, and a little noise."""
    noise = 1.0 + 1e-4 * random.random()
    return noise * (6.0 if plan.launches[0].block[0] == 128 else 5.0)


def far_python(folder: Path, gpu: Literal["twin", "workers", "none"] = "twin") -> Path:
    """Return a program in `folder` that is this Python with the bindings of a GPU.

    Args:
        folder: Of the program.
        gpu: A twin; workers in their sandbox that play a GPU (`scripted_gpu.py`); or none.
    """
    program = folder / f"python-with-{gpu}"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {__file__} {gpu} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


class _Lasting(dict[tuple[str, int], Arrays]):
    """Checked outputs that the next process finds, as a GPU would compute them anew."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def __setitem__(self, key: tuple[str, int], outputs: Arrays) -> None:
        super().__setitem__(key, outputs)
        self._path(key).write_bytes(pickle.dumps(outputs))

    def __missing__(self, key: tuple[str, int]) -> Arrays:
        outputs: Arrays = pickle.loads(self._path(key).read_bytes())
        return outputs

    def _path(self, key: tuple[str, int]) -> Path:
        return self._folder / f"{content_hash(map(str, key))}.outputs"


class _LastingTwin(SimTimer):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, wide_blocks_are_faster)
        self._outputs = _Lasting(settings.home)


def twins_opener(settings: Settings, stop: PollableEvent) -> OpenHere:
    del stop

    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        del has_spare, helpers
        told(f"a twin of {name}")
        return _LastingTwin(settings)

    return open_here


def workers_opener(settings: Settings, stop: PollableEvent) -> OpenHere:
    del stop

    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        assert name == "cuda:0"

        def make(folder: Path | None, library: bool) -> WorkerProcess:
            del library
            readable = () if folder is None else (folder,)
            return WorkerProcess(WorkerSpec(ENGINE, (), readable), settings)

        def start() -> StartRequest:
            cubins = helpers("sm_90a")
            assert cubins
            assert all(Path(path).is_file() for path in cubins.values())
            return StartRequest(device_uuid=H100.uuid, helper_cubins=cubins)

        gpu = FoundGpu(H100, load_gpus()["H100"])
        lock = TicketLock(H100.uuid, settings.home / "locks")
        return CudaDevice(gpu, WorkerPool(make, start, has_spare=has_spare), lock, told)

    return open_here


def main(gpu: str, code: str, arguments: list[str]) -> None:
    """Run `code` as `python -c` does."""
    known = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        """Have what a GPU's worker imports."""
        return ModuleSpec(name, None) if name in _BINDINGS else known(name, package)

    importlib.util.find_spec = find_spec
    if gpu != "none":
        service.opener = twins_opener if gpu == "twin" else workers_opener
    sys.argv = ["-c", *arguments]
    exec(code, {"__name__": "__main__"})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[3], sys.argv[4:])
