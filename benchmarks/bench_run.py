"""Print what a search with agents makes of a GPU: its busy share, evaluations per minute.

Runs the search of `kopt run` over Hopper kernels with a model that is played by a script behind a
loopback Messages API: no key, no network, nothing is paid. Each kernel is prepared by a run of one
evaluation, which builds and chooses its baseline and counts for nothing. A run is left before its
winner would be proven, which takes a minute of oracles and promotion after the search; --prove
waits for the full check. From an empty KOPT_HOME in a temporary folder unless --home names one.

    PYTHONPATH=tests .venv/bin/python benchmarks/bench_run.py [--device cuda:0] [--seconds 90]
        [--all] [--kernel ID ...] [--beam-width N] [--rounds N] [--think S] [--prove]
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kopt.config.search_settings import SearchSettings, load_search_settings
from kopt.config.settings import ClaudeAccess, Settings, settings_from_environment
from kopt.kernels.problem_loader import load_problems
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import Budget
from kopt.search.records.run_state import Event, EventKind
from kopt.search.reports.run_report import RunReport, report_run
from kopt.search.rounds.advance import run_search
from kopt.search.runs.parts import RunPlace, search_of
from kopt.search.runs.run import RunRequest, begin_run
from kopt.server.opened_device import DeviceChoice, OpenedDevice, opened_device
from support.fake_messages import FakeMessages
from support.messages_faults import Fault
from support.messages_wire import Turn
from support.played.good import good_model
from support.played.metered import Metered, Played

TARGET = "target: the GPU is held for 80 % of the time with a candidate queued or under evaluation"


@dataclass(frozen=True)
class Bench:
    """What all runs have in common."""

    settings: Settings
    search: SearchSettings
    seconds: float
    """For each run."""
    proves: bool
    """Whether winners are put to the full check."""


class SearchIsOver(KeyboardInterrupt):
    """Leaves a run as Ctrl-C does, paused."""


def main() -> None:
    """Run and print."""
    options = _options()
    settings = settings_from_environment()
    with (
        tempfile.TemporaryDirectory() as temporary,
        FakeMessages(_thinking(options.think)) as fake,
    ):
        access = ClaudeAccess(api_key="played", base_url=fake.url)
        home = options.home or Path(temporary)
        kernels = options.kernel or list(_hopper_kernels(settings, options.all))
        bench = Bench(
            replace(settings, home=home, claude=access, gpu_idle_s=0.0),
            load_search_settings().with_beam(options.beam_width, options.rounds),
            options.seconds / len(kernels),
            options.prove,
        )
        with opened_device(DeviceChoice(options.device), bench.settings, print) as opened:
            _print_table(list(_reports(kernels, bench, opened)))


def _reports(kernels: Sequence[str], bench: Bench, opened: OpenedDevice) -> Iterator[RunReport]:
    """Yield the report of each run."""
    for kernel in kernels:
        began = time.monotonic()
        _run(kernel, bench, opened, Budget(evaluations=1))
        print(f"{kernel}: prepared in {time.monotonic() - began:.1f} s", flush=True)
        report = _run(kernel, bench, opened, Budget(seconds=bench.seconds))
        print(_row(report), flush=True)
        yield report


def _run(kernel: str, bench: Bench, opened: OpenedDevice, budget: Budget) -> RunReport:
    request = RunRequest(
        kernel=kernel,
        device=opened.device.name,
        gpu=None if opened.timer is None else opened.timer.facts,
        arch=opened.arch,
        search=bench.search,
        budget=budget,
    )
    with closing(begin_run(request, bench.settings)) as store:
        site = EvaluationSite(opened.device, opened.timer, bench.settings, store.artifacts)
        with search_of(store, RunPlace(site)) as search, suppress(SearchIsOver):
            run_search(replace(search, promote=None), None if bench.proves else _leave)
        return report_run(store.reader, store.folder)


def _leave(event: Event) -> None:
    if event.kind is EventKind.FINAL_CHECK:
        raise SearchIsOver


def _print_table(reports: Sequence[RunReport]) -> None:
    pending_s = sum(report.pace.pending_s for report in reports)
    gpu_s = sum(report.pace.gpu_s or 0.0 for report in reports)
    spent_s = sum(report.spent_s for report in reports)
    count = sum(report.pace.evaluations for report in reports)
    share = f"{gpu_s / pending_s:.1%}" if gpu_s and pending_s else "unavailable"
    print(
        f"\nall: {count} evaluations in {spent_s:.1f} s, {60 * count / spent_s:.1f} per minute;"
        f" GPU held {gpu_s:.1f} s of {pending_s:.1f} s with a candidate pending: {share} (measured)"
    )
    print(TARGET)


def _row(report: RunReport) -> str:
    pace = report.pace
    share = "unavailable" if pace.gpu_busy_share is None else f"{pace.gpu_busy_share:.1%}"
    gain = "no winner" if report.ratio is None else f"{report.ratio:.2f}x the start"
    return (
        f"{report.kernel}: {pace.evaluations} evaluations, {pace.evaluations_per_minute or 0.0:.1f}"
        f" per minute, busy share {share}; {report.spend.calls} calls, {gain} ({report.provenance})"
    )


def _hopper_kernels(settings: Settings, every: bool) -> Iterator[str]:
    """Yield the kernels whose baselines run on Hopper: all, or the smallest of each problem."""
    for problem in load_problems(settings.problems).values():
        if any("9.0" in baseline.devices for baseline in problem.baselines):
            yield from problem.kernel_ids if every else problem.kernel_ids[:1]


def _thinking(seconds: float) -> Played:
    """Return the good model, which takes so long for each reply."""
    model = Metered(good_model)

    def answer(body: Mapping[str, Any]) -> Turn | Fault:
        time.sleep(seconds)
        return model(body)

    return answer


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--seconds", type=float, default=90.0, help="for all runs that count")
    parser.add_argument("--all", action="store_true", help="every workload of every Hopper problem")
    parser.add_argument("--kernel", action="append", metavar="ID")
    parser.add_argument("--beam-width", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--prove", action="store_true", help="put winners to the full check")
    parser.add_argument("--think", type=float, default=0.0, help="seconds that a reply takes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
