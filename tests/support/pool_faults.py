"""A run on a pool of two nodes while its processes are killed, and what came of it."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from kopt.search.records.run_state import EventKind
from support.pool_cluster import TwoNodes
from support.pool_run import begun_store, drive, expected
from support.pool_twin import LOG
from support.recorded_evaluator import RecordedEvaluator
from support.scripted_runs import final_state

Fault = Literal["worker", "actor", "coordinator", "node", "new node", "driver"]
_COMMANDS: dict[Fault, tuple[str, ...]] = {
    "worker": ("kopt.tools.gpu.worker",),
    "actor": ("ray::Seat",),
    "coordinator": ("ray::AsyncSeat",),
}


@dataclass(frozen=True)
class FaultyRun:
    """What is known of a run after its end."""

    final: Mapping[str, Any]
    """The state that must not depend on faults."""
    results: Counter[tuple[int, str]]
    """How many results were recorded, by candidate and level."""
    requeued: int
    """Evaluations that were begun again."""
    executions: int
    """Begun by any actor."""
    killed: Counter[Fault]


def undisturbed(home: Path, count: int) -> Mapping[str, Any]:
    """Return the final state of the same run where nothing fails."""
    with begun_store(home, count) as store:
        drive(store, count, RecordedEvaluator(expected, slots=8))
        return final_state(store)


def run_with_faults(
    cluster: TwoNodes, home: Path, count: int, faults: Mapping[int, Fault]
) -> FaultyRun:
    """Drive a run of `count` candidates to its end.

    Args:
        cluster: Whose processes are killed.
        home: Of the run.
        count: Candidates.
        faults: What is killed, by the number of finished evaluations at which it is.
    """
    random, waiting = Random(count), sorted(faults)
    killed: Counter[Fault] = Counter()
    before = _executions(cluster)
    is_over = False
    while not is_over:
        with start_run(home, cluster, count) as driver:
            for done in numbers_of(driver):
                while waiting and waiting[0] <= done:
                    fault = faults[waiting.pop(0)]
                    killed[fault] += _inflict(fault, cluster, driver, random)
            driver.wait()
            assert driver.returncode in (0, -signal.SIGKILL)
            is_over = driver.returncode == 0
    with begun_store(home, count) as store:
        events = store.reader.events()
        results = [one.data for one in events if one.kind is EventKind.EVALUATION_DONE]
        return FaultyRun(
            final=final_state(store),
            results=Counter((one["candidate"], one["level"]) for one in results),
            requeued=sum(one.kind is EventKind.EVALUATION_REQUEUED for one in events),
            executions=_executions(cluster) - before,
            killed=killed,
        )


def _executions(cluster: TwoNodes) -> int:
    log = Path(cluster.environment["KOPT_HOME"], LOG)
    return len(log.read_text().splitlines()) if log.is_file() else 0


def start_run(home: Path, cluster: TwoNodes, count: int) -> "subprocess.Popen[str]":
    """Return a process that drives the run below `home`."""
    words: Sequence[str] = (str(home), f"ray://{cluster.address}", str(count))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "support.pool_run", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(cluster.environment),
    )


def numbers_of(driver: "subprocess.Popen[str]") -> Iterator[int]:
    """Yield how many evaluations a run has finished, each time that there is one more."""
    assert driver.stdout is not None
    for line in driver.stdout:
        yield int(line)


def _inflict(
    fault: Fault, cluster: TwoNodes, driver: "subprocess.Popen[str]", random: Random
) -> bool:
    """Do it; return whether there was something to kill."""
    match fault:
        case "node":
            cluster.kill_node()
        case "new node":
            cluster.add_node()
        case "driver":
            driver.kill()
        case _:
            pids = cluster.pids(*_COMMANDS[fault])
            if not pids:
                return False
            with suppress(ProcessLookupError):
                os.kill(random.choice(pids), signal.SIGKILL)
    return True
