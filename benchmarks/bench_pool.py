"""Print one sweep on 1, 2, 4 and 8 GPUs of this machine, by workers of this process and by Ray.

    python benchmarks/bench_pool.py [--gpus 1,2,4] [--count 240] [--json FILE] [--sim]

Candidates are the choices of one kernel's `tune`, each checked and timed as in a run. `local` is
one device a GPU in this process, with two threads each; `ray` is a pool over `ray start --head
--num-gpus N`, which this script starts and stops: no other Ray may run here. With more than one GPU
a worker process is killed half-way (local), or an actor (ray). Efficiency is the evaluations a
minute over N times those of one GPU of the same way. --sim runs on simulators, to try the script.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from markdown_tables import grid

from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluate_job import evaluate_job
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import as_timer

KERNEL = "silu_and_mul_b8xh14336"
MOST_TRIES = 5
_VICTIMS = {"local": "kopt.tools.gpu.worker", "ray": "ray::Seat"}


@dataclass(frozen=True)
class PoolFigures:
    """What one way came to on a number of GPUs."""

    way: str
    gpus: int
    evaluations_a_minute: float
    busy_share: float
    """GPU time of all evaluations / (GPUs x elapsed time); 0 on simulators."""
    wait_p50_s: float
    """An evaluation's time beyond what it held the GPU: compiling, judging, waiting its turn."""
    wait_p95_s: float
    lost: int
    repeated: int
    passed: int


class Sweep:
    """Jobs, and what came of them; from several threads."""

    def __init__(self, jobs: Sequence[EvaluationJob], half_way: Callable[[], None]) -> None:
        """Call `half_way` once half of the jobs are done."""
        self._jobs, self._half_way = jobs, half_way
        self._turn = threading.Lock()
        self.done: list[Evaluation] = []
        self.repeated = 0

    def run(self, sites: "SimpleQueue[EvaluationSite]", at_once: int) -> float:
        """Evaluate all, each on a site that is free; return the seconds that it took."""
        began = time.monotonic()
        with ThreadPoolExecutor(at_once) as threads:
            list(threads.map(partial(self._evaluate, sites), self._jobs))
        return time.monotonic() - began

    def _evaluate(self, sites: "SimpleQueue[EvaluationSite]", job: EvaluationJob) -> None:
        for _ in range(MOST_TRIES):
            site = sites.get()
            try:
                found = evaluate_job(job, site)
            except InfraError:
                with self._turn:
                    self.repeated += 1
                continue
            finally:
                sites.put(site)
            with self._turn:
                self.done.append(found)
                is_half = len(self.done) == len(self._jobs) // 2
            if is_half:
                self._half_way()
            return


def make_jobs(count: int, arch: str, settings: Settings) -> list[EvaluationJob]:
    """Return `count` evaluations, which go through the choices again and again."""
    problem, workload = find_kernel(KERNEL, settings.problems)
    start = read_candidate(problem.folder / "reference.cu")
    choices = Case(problem, workload, start).choices
    return [
        EvaluationJob(
            id=f"bench/{number}/tie",  # of which no time is taken over from another
            kernel=KERNEL,
            source=start.source,
            source_name=start.name,
            tune=dict(choices[number % len(choices)]),
            level="tie",
            arch=arch,
        )
        for number in range(count)
    ]


def measure(way: str, gpus: int, options: argparse.Namespace, settings: Settings) -> PoolFigures:
    """Sweep once."""
    names = _names(way, gpus, options.sim)
    with ExitStack() as stack:
        devices = [stack.enter_context(open_device(one, settings, ignore)) for one in names]
        sites: SimpleQueue[EvaluationSite] = SimpleQueue()
        timers = [as_timer(device) for device in devices]
        arch = "sm_90a" if timers[0] is None else timers[0].facts.arch
        for device, timer in zip(devices, timers, strict=True):
            site = EvaluationSite(device, timer, settings, open_artifacts(settings.home))
            evaluate_job(make_jobs(1, arch, settings)[0], site)  # workers start, libraries build
            for _ in range(2 * gpus // len(devices)):  # one at work, one compiled or judged
                sites.put(site)
        sweep = Sweep(make_jobs(options.count, arch, settings), lambda: _kill(way, gpus))
        took_s = sweep.run(sites, 2 * gpus)
    waits = [one.elapsed_s - one.gpu_seconds for one in sweep.done]
    return PoolFigures(
        way=way,
        gpus=gpus,
        evaluations_a_minute=60 * len(sweep.done) / took_s,
        busy_share=sum(one.gpu_seconds for one in sweep.done) / took_s / gpus,
        wait_p50_s=statistics.median(waits),
        wait_p95_s=statistics.quantiles(waits, n=20)[-1],
        lost=options.count - len(sweep.done),
        repeated=sweep.repeated,
        passed=sum(one.status == "passed" for one in sweep.done),
    )


def _names(way: str, gpus: int, on_sim: bool) -> list[str]:
    if way == "ray":
        return ["ray/sim" if on_sim else "ray"]
    return ["sim"] * gpus if on_sim else [f"cuda:{number}" for number in range(gpus)]


def _kill(way: str, gpus: int) -> None:
    """End one process, where there is more than one."""
    for folder in Path("/proc").glob("[0-9]*") if gpus > 1 else ():
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:  # it has ended
            continue
        if _VICTIMS[way] in command:
            os.kill(int(folder.name), signal.SIGKILL)
            return


def _ray(*words: str) -> None:
    subprocess.run(["ray", *words], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure, print a table, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", default="1,2,4", help="how many, one sweep each")
    parser.add_argument("--count", type=int, default=240)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sim", action="store_true")
    options = parser.parse_args()
    settings = replace(settings_from_environment(), claude=None)
    figures: list[PoolFigures] = []
    for gpus in map(int, options.gpus.split(",")):
        figures.append(_said(measure("local", gpus, options, settings)))
        offered = ("--resources", json.dumps({"kopt_sim": gpus})) if options.sim else ()
        _ray("start", "--head", "--disable-usage-stats", f"--num-gpus={gpus}", *offered)
        try:
            figures.append(_said(measure("ray", gpus, options, settings)))
        finally:
            _ray("stop")
    print(_table(figures))
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(one) for one in figures], indent=1))


def _said(found: PoolFigures) -> PoolFigures:
    print(found, file=sys.stderr, flush=True)
    return found


def _table(figures: Sequence[PoolFigures]) -> str:
    alone = {one.way: one.evaluations_a_minute / one.gpus for one in reversed(figures)}
    rows = [
        (
            one.way,
            str(one.gpus),
            f"{one.evaluations_a_minute:.1f}",
            f"{one.evaluations_a_minute / one.gpus / alone[one.way]:.2f}",
            f"{one.busy_share:.2f}",
            f"{one.wait_p50_s:.2f} / {one.wait_p95_s:.2f}",
            f"{one.lost} / {one.repeated}",
        )
        for one in figures
    ]
    heads = ("way", "GPUs", "a minute", "efficiency", "busy", "wait p50 / p95 s", "lost / repeated")
    return grid(heads, rows, texts=("way",))


if __name__ == "__main__":
    main()
