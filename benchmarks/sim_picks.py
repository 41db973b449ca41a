"""Hold searches on the simulator against a GPU: is what they pick near the best they had?

    .venv/bin/python benchmarks/sim_picks.py search FOLDER [--gpu H200] [--evaluations 12]
        [--kernel PART ...]
    .venv/bin/python benchmarks/bench_choices.py FOLDER/jobs --baseline > TIMES     # on that GPU
    .venv/bin/python benchmarks/sim_picks.py score FOLDER TIMES

The first searches from the reference kernel of each kernel with a Hopper winner, on the simulator
of a GPU, without models, and keeps every candidate that passed and which one it would go on with;
kernels that are in FOLDER already are not searched again. The second times them all on the GPU, in
one session a kernel where they fit. The third prints, for each kernel, how much longer the pick
takes than the fastest of its candidates. The aim: at most 5 % in at least 15 of 18.
"""

import argparse
import json
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from markdown_tables import grid
from pool_search import SearchIsLeft

from kopt.config.callbacks import ignore
from kopt.config.errors import KoptError, ToolError
from kopt.config.search_settings import load_search_settings
from kopt.config.settings import settings_from_environment
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import Budget
from kopt.search.records.members import Member
from kopt.search.records.run_state import Event, EventKind
from kopt.search.rounds.advance import run_search
from kopt.search.runs.parts import RunPlace, search_of
from kopt.search.runs.run import RunRequest, begin_run
from kopt.search.selection.ranking import rank
from kopt.tools.bench.verify_all import SUFFIX
from kopt.tools.device_choice import open_device

ARCH = "sm_90a"
NEAR = 1.05
_PICKS = "picks.json"
_TIME = re.compile(r"^(\S+) ([0-9.]+) us (\S+) ")


@dataclass(frozen=True)
class SimPick:
    """What a search on the simulator came to."""

    kernel: str
    candidates: tuple[str, ...]
    """Names of the files of all candidates that passed, without their endings."""
    pick: str
    """The one that leads."""


def main() -> None:
    """Search, or score."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("search")
    one.add_argument("folder", type=Path)
    one.add_argument("--gpu", default="H200", help="whose simulator")
    one.add_argument("--evaluations", type=int, default=12, help="candidates of a search")
    one.add_argument("--kernel", nargs="*", default=[""], help="parts of kernel ids")
    one.set_defaults(does=_search_all)
    other = commands.add_parser("score")
    other.add_argument("folder", type=Path)
    other.add_argument("times", type=Path)
    other.set_defaults(does=_score)
    options = parser.parse_args()
    try:
        options.does(options)
    except (OSError, UnicodeDecodeError, KoptError) as error:
        parser.error(str(error))


def _search_all(options: argparse.Namespace) -> None:
    kernels = [one for one in won_kernels() if any(part in one for part in options.kernel)]
    if not kernels:
        raise ToolError(f"no kernel with a winner has {' or '.join(options.kernel)} in its id")
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    picks = read_picks(folder)
    known = {one.kernel for one in picks}
    for kernel in kernels:
        if kernel in known:
            continue
        members, leader = _searched(kernel, f"sim:{options.gpu}", options.evaluations)
        picks.append(_kept(kernel, members, leader, folder))
        found = json.dumps([asdict(one) for one in picks], indent=1)
        (folder / _PICKS).write_text(found, encoding="utf-8")
        print(f"{kernel}: {len(picks[-1].candidates)} candidates, {picks[-1].pick}", flush=True)


def won_kernels() -> list[str]:
    """Return the ids of the kernels with a winner for Hopper."""
    return [
        problem.kernel_id(workload)
        for problem in load_problems().values()
        for workload in problem.workloads
        if (problem.folder / "winners" / f"{workload.name}.{ARCH}{SUFFIX}").is_file()
    ]


def read_picks(folder: Path) -> list[SimPick]:
    """Return what was searched before."""
    path = folder / _PICKS
    entries: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return [SimPick(one["kernel"], tuple(one["candidates"]), one["pick"]) for one in entries]


def _searched(kernel: str, device: str, evaluations: int) -> tuple[list[Member], Member]:
    settings = settings_from_environment()
    with open_device(device, settings) as opened:
        request = RunRequest(
            kernel=kernel,
            device=opened.name,
            gpu=None,
            arch=ARCH,
            search=load_search_settings().model_copy(update={"memory": "off"}),
            budget=Budget(evaluations=evaluations),
            asks_models=False,
        )
        with closing(begin_run(request, settings)) as store:
            site = EvaluationSite(opened, None, settings, store.artifacts)
            with search_of(store, RunPlace(site)) as search:
                try:
                    run_search(replace(search, promote=None), _leave)
                except SearchIsLeft:
                    ignore("its winner is proven on a GPU")
            members = store.reader.members()
    passed = [one for one in members if one.quick and one.quick.status is Status.PASSED]
    return passed, rank(members)[0]


def _leave(event: Event) -> None:
    if event.kind is EventKind.FINAL_CHECK:
        raise SearchIsLeft


def _kept(kernel: str, members: Sequence[Member], leader: Member, folder: Path) -> SimPick:
    """Write the candidates and a line of jobs for each."""
    names = {one.seq: f"{kernel}-{one.seq}" for one in members}
    with (folder / "jobs").open("a", encoding="utf-8") as jobs:
        for one in members:
            path = folder / f"{names[one.seq]}.cu"
            path.write_text(one.source, encoding="utf-8")
            values = " ".join(f"{name}={value}" for name, value in one.tune.items())
            jobs.write(f"{kernel} {path} {values}".rstrip() + "\n")
    return SimPick(kernel, tuple(names.values()), names[leader.seq])


def _score(options: argparse.Namespace) -> None:
    if not read_picks(options.folder):
        raise ToolError(f"{options.folder} has no searches: sim_picks.py search {options.folder}")
    print(score_table(read_picks(options.folder), read_times(options.times.read_text("utf-8"))))


def read_times(text: str) -> dict[str, float]:
    """Return the medians in us that bench_choices.py has printed, by the file's name."""
    found = (_TIME.match(f"{line} ") for line in text.splitlines())
    return {one[3]: float(one[2]) for one in found if one}


def score_table(picks: Sequence[SimPick], times_us: dict[str, float]) -> str:
    """Return a line a kernel, and how many picks are near the best."""
    lines: list[tuple[str, ...]] = []
    near = timed = 0
    for one in picks:
        of_kernel = {name: times_us[name] for name in one.candidates if name in times_us}
        if one.pick not in of_kernel:
            lines.append((one.kernel, str(len(of_kernel)), "-", "-", "-"))
            continue
        best_us = min(of_kernel.values())
        ratio = of_kernel[one.pick] / best_us
        timed += 1
        near += ratio <= NEAR
        shown = (f"{of_kernel[one.pick]:.3f}", f"{best_us:.3f}", f"{ratio:.3f}")
        lines.append((one.kernel, str(len(of_kernel)), *shown))
    heads = ("kernel", "candidates", "pick us", "best us", "pick / best")
    table = grid(heads, lines, texts=("kernel",))
    return f"{table}\n\n{near} of {timed} picks are within {NEAR - 1:.0%} of the best"


if __name__ == "__main__":
    main()
