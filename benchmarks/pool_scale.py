"""A pool of a thousand GPUs on one machine: how many calls are handed out, and how fairly.

The coordinator, its queue and Ray are the real ones; a GPU is an entry in an actor that sleeps for
as long as a call would take, a hundred of them a process. Four callers want different numbers of
evaluators; half-way one of the processes is killed, with all GPUs in it.

    python benchmarks/pool_scale.py --gpus 1000 --call-s 4 --seconds 60

Needs the extra `ray`; starts a Ray cluster of its own.
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Collection, Iterable
from importlib import import_module
from itertools import count
from typing import Any, cast

from kopt.config.pool_address import PoolKind
from kopt.kernels.pool_status import PoolStatus
from kopt.server.pool.coordinator import Coordinator
from kopt.server.pool.evaluator_queue import EvaluatorSlot
from kopt.server.pool.hiring import Hiring
from kopt.server.pool.ray_seam import lost_errors, ray_module

CALLS = 6
"""Executions and sessions of one evaluation."""
WANTS = (1200, 1200, 100, 10)
"""Evaluations that each caller has under way, for a thousand GPUs."""
_PER_PROCESS = 100


class FakeGpus:
    """Some GPUs, in one process."""

    def __init__(self) -> None:
        """Be another incarnation than the process before."""
        self._token = f"{os.getpid()} {time.time_ns()}"

    async def ready(self, gpu: str) -> dict[str, str]:
        """Return what an evaluator says of itself."""
        facts = {"opened": "{}", "model": "fake", "gpu": gpu, "host": "here"}
        return facts | {"incarnation": self._token}

    async def work(self, seconds: float) -> int:
        """Take as long as a call."""
        await asyncio.sleep(seconds)
        return os.getpid()


class _OneGpu:
    """Looks like the actor of one GPU."""

    def __init__(self, process: Any, gpu: str) -> None:
        self._process, self._gpu = process, gpu

    @property
    def ask(self) -> "_OneGpu":
        return self

    def remote(self, method: str) -> Any:
        assert method == "ready"
        return self._process.ready.remote(self._gpu)


class FakeHiring:
    """Stands in for `Hiring`: all GPUs are there from the start."""

    pool = "fakes"

    def __init__(self, processes: list[Any], gpus: int) -> None:
        """Spread `gpus` over `processes`."""
        self.lost = lost_errors()
        self._gpus = {
            f"gpu-{number}": _OneGpu(processes[number % len(processes)], f"gpu-{number}")
            for number in range(gpus)
        }

    def changes(
        self, slots: Iterable[EvaluatorSlot], kinds: Collection[PoolKind]
    ) -> tuple[list[EvaluatorSlot], list[EvaluatorSlot]]:
        """Return all GPUs, once."""
        del kinds
        known = {one.id for one in slots}
        return [], [EvaluatorSlot(x, "cuda", "n", "here") for x in self._gpus if x not in known]

    def actors(self, slot_id: str) -> list[_OneGpu]:
        """Return one."""
        return [self._gpus[slot_id]]

    def is_expecting(self, slots: Iterable[EvaluatorSlot], kind: PoolKind) -> bool:
        """Say so: none is ever gone."""
        del slots, kind
        return True

    def waiting_words(self, kind: PoolKind) -> str:
        """Say what is waited for."""
        return f"waiting for {kind}"

    def why_none(self, kind: PoolKind) -> str:
        """Say that there will be some."""
        del kind
        return ""


class Host:
    """The actor of the coordinator."""

    def __init__(self, processes: list[Any], gpus: int) -> None:
        """Make it."""
        self._inner = Coordinator(cast("Hiring", FakeHiring(processes, gpus)))

    async def ask(self, method: str, *arguments: Any) -> Any:
        """Pass a call on."""
        answer = getattr(self._inner, method)(*arguments)
        return await answer if asyncio.iscoroutine(answer) else answer

    async def cpu_s(self) -> float:
        """Return the CPU time of this process, in seconds."""
        return time.process_time()


class Driver:
    """One caller, with a number of evaluations under way."""

    def __init__(self, name: str, host: Any, processes: list[Any], call_s: float) -> None:
        """Ask nothing yet."""
        self._name, self._host, self._processes, self._call_s = name, host, processes, call_s
        self._lost = lost_errors()
        self._waits: list[float] = []
        self._counts: Counter[str] = Counter()
        self._errands = count()
        self._is_over = False

    async def begin(self, under_way: int) -> None:
        """Have evaluations under way until the end."""
        self._work = [asyncio.create_task(self._evaluations()) for _ in range(under_way)]
        self._beat = asyncio.create_task(self._beating())

    async def counts(self) -> dict[str, Any]:
        """Return what was done so far, and each wait in seconds."""
        return dict(self._counts) | {"waits": self._waits}

    async def end(self) -> dict[str, Any]:
        """Finish what is under way and return the counts."""
        self._is_over = True
        await asyncio.gather(*self._work)
        return await self.counts()

    async def _beating(self) -> None:
        while not self._is_over:
            await self._host.ask.remote("beat", self._name, "cuda", "fake")
            await asyncio.sleep(5)

    async def _evaluations(self) -> None:
        while not self._is_over:
            errand = str(next(self._errands))
            self._counts["begun"] += 1
            for _ in range(CALLS):
                while not await self._called(errand):
                    self._counts["repeated"] += 1
            await self._host.ask.remote("end_errand", self._name, errand)
            self._counts["done"] += 1

    async def _called(self, errand: str) -> bool:
        wish = {"caller": self._name, "kind": "cuda", "model": "fake", "errand": errand}
        began = time.monotonic()
        found = await self._host.ask.remote("acquire", wish)
        self._waits.append(time.monotonic() - began)
        number = int(found["slot"].removeprefix("gpu-"))
        try:
            await self._processes[number % len(self._processes)].work.remote(self._call_s)
        except self._lost:
            await self._host.ask.remote("lost", found["lease"])
            return False
        await self._host.ask.remote("release", found["lease"])
        self._counts["calls"] += 1
        return True


def main() -> None:
    """Measure, and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=1000)
    parser.add_argument("--call-s", type=float, default=4.0, help="how long a call holds a GPU")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long is measured")
    options = parser.parse_args()
    ray, plain = ray_module(), cast("Any", import_module("ray"))
    ray.init(address="local", num_cpus=16, include_dashboard=False, log_to_driver=False)
    many = {"max_concurrency": 100_000, "max_restarts": -1, "num_cpus": 0}
    many["enable_task_events"] = False
    processes = [
        plain.remote(FakeGpus).options(**many).remote()
        for _ in range(-(-options.gpus // _PER_PROCESS))
    ]
    host = plain.remote(Host).options(**many).remote(processes, options.gpus)
    drivers = [
        plain.remote(Driver)
        .options(**many)
        .remote(f"caller {number}", host, processes, options.call_s)
        for number in range(len(WANTS))
    ]
    wants = [max(1, want * options.gpus // 1000) for want in WANTS]
    for driver, want in zip(drivers, wants, strict=True):
        plain.get(driver.begin.remote(want))
    time.sleep(4 * options.call_s)  # until all are at work
    before = [plain.get(driver.counts.remote()) for driver in drivers]
    cpu_s = plain.get(host.cpu_s.remote())
    began = time.monotonic()
    time.sleep(options.seconds)
    after = [plain.get(driver.counts.remote()) for driver in drivers]
    took_s = time.monotonic() - began
    cpu_s = plain.get(host.cpu_s.remote()) - cpu_s
    os.kill(plain.get(processes[0].work.remote(0.0)), signal.SIGKILL)
    ended = plain.get([driver.end.remote() for driver in drivers])
    status = PoolStatus.model_validate_json(plain.get(host.ask.remote("status")))
    calls = [b["calls"] - a["calls"] for a, b in zip(before, after, strict=True)]
    waits = [
        one for a, b in zip(before, after, strict=True) for one in b["waits"][len(a["waits"]) :]
    ]
    document = {
        "gpus": options.gpus,
        "call_s": options.call_s,
        "calls_a_second": sum(calls) / took_s,
        "evaluations_a_second": sum(calls) / CALLS / took_s,
        "gpu_busy_share": sum(calls) * options.call_s / took_s / options.gpus,
        "coordinator_cpu_share": cpu_s / took_s,
        "wanted": wants,
        "gpus_held": [one * options.call_s / took_s for one in calls],
        "wait_p50_s": statistics.median(waits),
        "wait_p95_s": statistics.quantiles(waits, n=20)[-1],
        "begun": sum(one["begun"] for one in ended),
        "done": sum(one["done"] for one in ended),
        "repeated": sum(one.get("repeated", 0) for one in ended),
        "evaluators_free_at_the_end": sum(one.state == "free" for one in status.evaluators),
    }
    print(json.dumps(document, indent=1))
    ray.shutdown()


if __name__ == "__main__":
    main()
