"""The devices of one row of `bench_pool.py`: opened, and each warm before anything is measured."""

import os
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pool_head import ray_head
from pool_kills import WORKER, processes_below
from pool_search import arch_of
from pool_sweep import SweepPlace, sweep_choices, sweep_jobs

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluate_job import evaluate_job
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import ManyEvaluators
from kopt.tools.devices.timer import as_timer

_READY_S = 180.0


@dataclass(frozen=True)
class RowPlaces:
    """The open devices of a row."""

    way: str
    gpus: int
    places: list[SweepPlace]
    root: int
    """The process below which one is killed."""
    first_workers: frozenset[int]
    """The worker processes of the first device; empty where they are not known."""
    address: str = ""
    """The address of the pool; "" without one."""

    @property
    def under_way_factor(self) -> int:
        """How many GPUs a place has."""
        return self.gpus // len(self.places)


@dataclass(frozen=True)
class RowWish:
    """What is to be opened for a row."""

    gpus: int
    settings: Settings
    on_sim: bool
    kernel: str
    """The kernel of the first evaluations."""


@contextmanager
def local_places(wish: RowWish) -> Generator[RowPlaces]:
    """Open a device for each GPU, and have each evaluate once.

    Raises:
        KoptError: There is no such GPU, or it cannot evaluate.
    """
    with ExitStack() as stack:
        names = ["sim" if wish.on_sim else f"cuda:{number}" for number in range(wish.gpus)]
        devices = [stack.enter_context(open_device(one, wish.settings, ignore)) for one in names]
        artifacts = open_artifacts(wish.settings.home)
        places = [
            SweepPlace(EvaluationSite(device, as_timer(device), wish.settings, artifacts), number)
            for number, device in enumerate(devices)
        ]
        _warm(
            places[:1], wish.kernel, f"local_{wish.gpus}"
        )  # alone: it may build a library for all
        workers = frozenset(one.pid for one in processes_below(os.getpid(), WORKER))
        if places[1:]:
            _warm(places[1:], wish.kernel, f"local_{wish.gpus}_others")
        yield RowPlaces("local", wish.gpus, places, os.getpid(), workers)


@contextmanager
def ray_places(wish: RowWish) -> Generator[RowPlaces]:
    """Start a cluster, open its pool, and have each evaluator evaluate once.

    Raises:
        KoptError: Ray does not start, or its evaluators cannot evaluate.
    """
    with ExitStack() as stack:
        head = stack.enter_context(ray_head(wish.gpus, wish.settings, on_sim=wish.on_sim))
        address = f"ray://{head.address}"
        name = f"{address}/sim" if wish.on_sim else address
        device = stack.enter_context(open_device(name, wish.settings, ignore))
        artifacts = open_artifacts(wish.settings.home)
        site = EvaluationSite(device, as_timer(device), wish.settings, artifacts)
        _await_all(site, wish.gpus)
        place = SweepPlace(site, 0)
        _warm([place] * wish.gpus, wish.kernel, f"ray_{wish.gpus}")
        yield RowPlaces("ray", wish.gpus, [place], head.pid, frozenset(), address)


def _await_all(site: EvaluationSite, gpus: int) -> None:
    """Wait until the pool has all its evaluators.

    Raises:
        InfraError: They do not come.
    """
    until = time.monotonic() + _READY_S
    while True:
        width = site.device.evaluators if isinstance(site.device, ManyEvaluators) else 0
        if width >= gpus:
            return
        if time.monotonic() > until:
            raise InfraError(f"the pool has {width} evaluators after {_READY_S:g} s, not {gpus}")
        time.sleep(0.5)


def _warm(places: Sequence[SweepPlace], kernel: str, name: str) -> None:
    """Evaluate once at each place, all at the same time: workers start, libraries build."""
    site = places[0].site
    arch = arch_of(site.device)
    choices = sweep_choices(kernel, arch, site.settings)[:1]
    jobs = sweep_jobs(choices, len(places), (kernel, arch, f"warm_{name}"))
    with ThreadPoolExecutor(len(places)) as threads:
        for found in threads.map(evaluate_job, jobs, [place.site for place in places]):
            if found.status is not Status.PASSED:
                print(f"first evaluation: {found.summary}", file=sys.stderr, flush=True)
