"""Print one sweep and one search on 1, 2 and more GPUs of this machine, by workers and by Ray.

    python benchmarks/bench_pool.py [--gpus 1,2,4] [--count 240] [--json FILE] [--sim]

The sweep evaluates kernels that kopt writes for one problem, at `--count` of their tune values.
`local` is one device a GPU in this process; `ray` is a pool over a cluster of its own, started here
and ended whatever happens. With more than one GPU all candidates are evaluated once more while a
worker process (local) or an actor (ray) is killed. Each row is printed once it is measured and kept
in `--json`; the tables come at the end, when a row was interrupted as well. The search is `kopt
run` without models: one GPU of this machine, and all of the cluster. --sim runs on simulators, to
try the script. docs/pool.md says what the columns mean.
"""

import argparse
import json
import os
import platform
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pool_kills import ACTOR, SIMULATION, WORKER, Killing, PoolWatch
from pool_places import RowPlaces, RowWish, local_places, ray_places
from pool_search import SearchFigures, arch_of, measure_search, one_gpu_words
from pool_sweep import (
    Choice,
    PoolSweep,
    SweepOutcome,
    SweptCandidate,
    first_after_s,
    sweep_choices,
    sweep_jobs,
)
from pool_table import (
    KillFigures,
    PoolRow,
    a_minute,
    agreement_table,
    kill_table,
    row_of,
    search_table,
    sweep_table,
)
from pool_utilization import read_utilization
from pool_verdicts import SpeedReading, agreement, read_evaluation

from kopt import __version__
from kopt.config.errors import KoptError
from kopt.config.settings import Settings, settings_from_environment
from kopt.search.storage.artifacts import open_artifacts

KERNEL = "silu_and_mul_b128xh14336"
"""At 8 rows each evaluation of the reference kernel held an H200 for 2.6 s."""
SMALL_KERNEL = "silu_and_mul_b8xh14336"


@dataclass
class PoolBench:
    """What all rows have in common, and what has come of them."""

    options: argparse.Namespace
    settings: Settings
    choices: list[Choice] = field(default_factory=list[Choice])
    alone: dict[int, SpeedReading] = field(default_factory=dict[int, SpeedReading])
    """What the first row has found, by candidate."""
    rows: list[PoolRow] = field(default_factory=list[PoolRow])
    searches: list[SearchFigures] = field(default_factory=list[SearchFigures])
    host: str = ""
    failed: list[str] = field(default_factory=list[str])


def main() -> None:
    """Measure, print tables, and write the figures."""
    options = _options()
    signal.signal(signal.SIGTERM, _ended)
    # No resident evaluator: the workers are to be this process's.
    settings = replace(settings_from_environment(), claude=None, gpu_idle_s=0.0)
    bench = PoolBench(options, settings)
    try:
        for gpus in options.gpus:
            for way, opened in (("local", local_places), ("ray", ray_places)):
                began = time.monotonic()
                try:
                    with opened(RowWish(gpus, settings, options.sim, options.kernel)) as at:
                        _say(f"{way}, {gpus}: ready after {time.monotonic() - began:.1f} s")
                        _measure(at, bench)
                except KoptError as error:
                    bench.failed.append(f"{way}, {gpus}: {type(error).__name__}: {error}")
                    _say(bench.failed[-1])
                _say(f"{way}, {gpus}: done after {time.monotonic() - began:.1f} s")
    except KeyboardInterrupt:
        bench.failed.append("interrupted")
    finally:
        _keep(bench)
        print(_document(bench), flush=True)
    sys.exit(1 if bench.failed else 0)


def _measure(at: RowPlaces, bench: PoolBench) -> None:
    """Make the row of one way and number of GPUs, and its search."""
    options, settings = bench.options, bench.settings
    device = at.places[0].site.device
    arch = arch_of(device)
    bench.host = bench.host or _host(at, options.kernel)
    bench.choices = bench.choices or sweep_choices(options.kernel, arch, settings)
    where = (options.kernel, arch, f"bench_{at.way}_{at.gpus}")
    jobs = sweep_jobs(bench.choices, options.count, where)
    under_way = options.under_way * at.under_way_factor
    with read_utilization(at.gpus) as busy:
        outcome = PoolSweep(jobs).run(at.places, under_way)
    row = replace(row_of(at.way, at.gpus, outcome), utilization=busy.share)
    _add(bench, _with_agreement(row, outcome.done, bench))
    if at.gpus > 1:
        kill, disturbed = _disturbed(at, bench, under_way)
        row = replace(bench.rows.pop(), kill=kill)
        others = outcome.done if bench.rows else []  # the first row is compared with no own one
        _add(bench, _with_agreement(row, [*others, *disturbed.done], bench))
    if options.search and (at.gpus == 1 or at.address):
        row_name = (at.way, at.gpus)
        found = measure_search(row_name, options.kernel, options.search, at.places[0].site)
        bench.searches.append(found)
        _say_last(search_table(bench.searches), with_head=search_table([found]))
        _say(one_gpu_words(found))
        _keep(bench)


def _with_agreement(row: PoolRow, done: Sequence[SweptCandidate], bench: PoolBench) -> PoolRow:
    """Return a row that is compared with the first one, or is it."""
    artifacts = open_artifacts(bench.settings.home)
    readings = [read_evaluation(one.candidate, one.found, artifacts) for one in done]
    if not bench.alone:
        bench.alone = {one.candidate: one for one in readings}
        return row
    return replace(row, agreement=agreement(bench.alone, readings))


def _disturbed(at: RowPlaces, bench: PoolBench, under_way: int) -> tuple[KillFigures, SweepOutcome]:
    """Evaluate all candidates again, and kill a process when a quarter of them is done."""
    kernel, arch = bench.options.kernel, arch_of(at.places[0].site.device)
    count = max(bench.options.count, 4 * bench.options.under_way * at.gpus)
    where = (kernel, arch, f"bench_{at.way}_{at.gpus}_killed")
    local_mark = SIMULATION if bench.options.sim else WORKER
    killing = Killing(at.root, ACTOR if at.address else local_mark, at.first_workers)
    watch = PoolWatch(at.address, bench.settings) if at.address else None
    jobs = sweep_jobs(bench.choices, count, where)
    outcome = PoolSweep(jobs, max(count // 4, 1), killing.begin).run(at.places, under_way)
    killed = killing.end()
    back_s: float | None = None
    if watch is not None:
        back_s = watch.end(killed)
    elif killed is not None and killed.pid in at.first_workers:
        back_s = first_after_s(outcome, 0, killed.at_s)
    what = "actor" if at.address else "simulation" if bench.options.sim else "worker"
    figures = KillFigures(
        killed="nothing found" if killed is None else what,
        evaluations_a_minute=a_minute(outcome),
        back_s=back_s,
        lost=outcome.lost,
        repeated=outcome.repeated,
        twice=outcome.twice,
    )
    return figures, outcome


def _add(bench: PoolBench, row: PoolRow) -> None:
    bench.rows.append(row)
    for table in (sweep_table, agreement_table, kill_table):
        _say_last(table(bench.rows), with_head=table([row]))
    _keep(bench)


def _say_last(table: str, with_head: str) -> None:
    """Show the last line of a table, if it is that of the row whose table is `with_head`."""
    if not with_head:
        return
    lines = table.splitlines()
    _say("\n".join([lines[0], lines[-1]]))


def _keep(bench: PoolBench) -> None:
    """Write what there is so far."""
    path: Path | None = bench.options.json
    if path is None:
        return
    found = {
        "host": bench.host,
        "rows": [asdict(one) for one in bench.rows],
        "searches": [asdict(one) for one in bench.searches],
        "failed": bench.failed,
    }
    path.write_text(json.dumps(found, indent=1), "utf-8")


def _document(bench: PoolBench) -> str:
    """Return the tables, with what they are of."""
    parts = [
        bench.host,
        sweep_table(bench.rows),
        kill_table(bench.rows),
        agreement_table(bench.rows),
        search_table(bench.searches),
        "\n".join(map(one_gpu_words, bench.searches)),
        "\n".join(bench.failed),
    ]
    return "\n" + "\n\n".join(part for part in parts if part)


def _host(at: RowPlaces, kernel: str) -> str:
    timer = at.places[0].site.timer
    facts = None if timer is None else timer.facts
    gpu = (
        "simulators"
        if facts is None
        else f"{facts.name}, driver {facts.driver_version}, CUDA {facts.cuda_version}"
    )
    command = shlex.join(["python", "benchmarks/bench_pool.py", *sys.argv[1:]])
    date = datetime.now(UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0))
    return (
        f"{gpu}; {cores} cores, Python {platform.python_version()}, kopt {__version__}, {date}:"
        f" `{command}`, {kernel}"
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _ended(number: int, _frame: object) -> None:
    """End in order: what was started ends with it, and the tables are printed."""
    sys.exit(128 + number)


def _number(text: str) -> int:
    """Return a whole number of at least 1."""
    if not text.strip().isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on, not {text!r}")
    return int(text)


def _numbers(text: str) -> list[int]:
    """Return the whole numbers of a list with commas."""
    return [_number(part) for part in text.split(",")]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--gpus", type=_numbers, default="1,2,4", help="how many, one row for each way"
    )
    parser.add_argument("--count", type=_number, default=240, help="candidates of a sweep")
    parser.add_argument("--kernel", help="kernel id; one for which kopt writes kernels itself")
    parser.add_argument("--under-way", type=_number, default=6, help="evaluations at once a GPU")
    parser.add_argument("--search", type=int, default=16, help="evaluations of a search; 0: none")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--sim", action="store_true", help="on simulators")
    options = parser.parse_args()
    if options.json is not None and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.absolute().parent}")
    options.kernel = options.kernel or (SMALL_KERNEL if options.sim else KERNEL)
    return options


if __name__ == "__main__":
    main()
