"""Replay finished runs under the stop rule of a plain copy: what it saves, and what it costs.

    .venv/bin/python benchmarks/stop_rule.py FOLDER ... [--copies benchmarks/headroom.json]
        [--least 0.03]

FOLDER is a run's, or one with runs in it, as KOPT_HOME/runs. The runs are of a GPU, and searched
with `headroom_stop: off`, or they end where the rule has ended them. Each is gone through round by
round as it was: evaluations count up to the round after which the rule ends it, with those of the
rounds that follow a search where the rule leaves them in. What a sweep after an earlier end would
have gained is not known and counts as nothing.

The copy's time is the one that the run measured, else that of its kernel in the file of copies.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from math import log
from pathlib import Path

from headroom_table import Headroom
from markdown_tables import grid

from kopt.config.search_settings import SearchSettings
from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import COPY, MetricValue
from kopt.search.records.members import Member
from kopt.search.records.run_state import RoundRow, RunState
from kopt.search.rounds.closing_rounds import CLOSING
from kopt.search.selection.headroom import copy_us_of
from kopt.search.selection.ranking import rank_unrefuted, speed_of
from kopt.search.selection.stopping import FinishedRound, copy_reached, stop_reason
from kopt.search.storage.artifacts import artifacts_of
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import open_viewer
from kopt.search.store.store import FILE_NAME


@dataclass(frozen=True)
class StoredRun:
    """What a run's store says of its search."""

    state: RunState
    rounds: tuple[RoundRow, ...]
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Replay:
    """One run with and without the rule."""

    kernel: str
    copy_us: float | None
    stopped_after: int | None
    """The round after which the rule ends the search; None where it does not."""
    evaluations: int
    kept_evaluations: int
    gain: float
    """ln of the speed of the best over that of the start."""
    kept_gain: float

    @property
    def saved(self) -> float:
        """The share of the evaluations that is not made."""
        return 1.0 - self.kept_evaluations / self.evaluations if self.evaluations else 0.0

    @property
    def kept(self) -> float:
        """The share of the gain that is left; 1 where there was none."""
        return self.kept_gain / self.gain if self.gain > 0.0 else 1.0


def replay(run: StoredRun, settings: SearchSettings) -> Replay:
    """Return what the rule in `settings` makes of a run."""
    stopped = _stopped_after(run, settings)
    last = max((one.number for one in run.rounds if one.kind not in CLOSING), default=0)
    end = last if stopped is None else stopped
    searched = [one for one in run.members if one.round <= end]
    kept = list(searched)
    if copy_reached(searched, settings) is None:
        closing_rounds = {one.number for one in run.rounds if one.kind in CLOSING}
        after = [one for one in run.members if one.round in closing_rounds]
        kept += after
        searched += after if stopped is None else []
    return Replay(
        kernel=run.state.settings.kernel,
        copy_us=copy_us_of(run.members),
        stopped_after=stopped,
        evaluations=_evaluated(run.members),
        kept_evaluations=_evaluated(kept),
        gain=_gain(run.members),
        kept_gain=_gain(searched),
    )


def _stopped_after(run: StoredRun, settings: SearchSettings) -> int | None:
    planned = [one.number for one in run.rounds if one.kind == "agents"]
    for one in run.rounds:
        if one.kind in CLOSING or one.number == 0:
            continue
        members = [member for member in run.members if member.round <= one.number]
        if one.kind == "rollouts":
            stop = copy_reached(members, settings)
        else:
            starts = planned[:1] == [one.number]
            stop = stop_reason(members, FinishedRound(one.number, starts), settings)
        if stop is not None and stop[0] == "headroom":
            return one.number
    return None


def _evaluated(members: Sequence[Member]) -> int:
    return sum(member.quick is not None for member in members)


def _gain(members: Sequence[Member]) -> float:
    """Return ln of the best speed over the start's, or over the baseline's if it has none."""
    best = next(iter(rank_unrefuted(members)), None)
    speed = None if best is None else speed_of(best)
    start = next(iter(members), None)
    first = None if start is None else speed_of(start)
    return 0.0 if speed is None else log(speed.value / (1.0 if first is None else first.value))


def read_run(folder: Path, copies: dict[str, float]) -> StoredRun:
    """Return the run in `folder`; one without a copy's time has that of its kernel."""
    with closing(open_viewer(folder / FILE_NAME)) as connection:
        reader = RunReader(connection, artifacts_of(folder.parent.parent))
        state, members = reader.state(), reader.members()
        copy_us = copies.get(state.settings.kernel)
        if copy_us_of(members) is None and copy_us is not None:
            members = tuple(_with_copy(one, copy_us) for one in members)
        return StoredRun(state, reader.rounds(), members)


def _with_copy(member: Member, copy_us: float) -> Member:
    if member.quick is None or not member.passed:
        return member
    value = MetricValue.of("", (COPY, "us"), Provenance.MEASURED, copy_us)
    values = (*member.quick.values, value)
    return replace(member, quick=member.quick.model_copy(update={"values": values}))


def run_folders(places: Sequence[Path]) -> Iterator[Path]:
    """Yield the folders of runs among and below `places`."""
    for place in places:
        if (place / FILE_NAME).is_file():
            yield place
        else:
            yield from sorted(file.parent for file in place.glob(f"*/{FILE_NAME}"))


def table(found: Sequence[Replay]) -> str:
    """Return a row for each run, and the totals."""
    heads = (
        *("kernel", "copy us", "stops after", "evaluations"),
        *("kept", "saved", "gain", "gain kept"),
    )
    rows = [
        (
            one.kernel,
            "unavailable" if one.copy_us is None else f"{one.copy_us:.3f}",
            "-" if one.stopped_after is None else f"round {one.stopped_after}",
            str(one.evaluations),
            str(one.kept_evaluations),
            f"{one.saved:.0%}",
            f"{one.gain:.3f}",
            f"{one.kept:.1%}",
        )
        for one in found
    ]
    evaluations = sum(one.evaluations for one in found)
    kept = sum(one.kept_evaluations for one in found)
    gain, kept_gain = sum(one.gain for one in found), sum(one.kept_gain for one in found)
    saved = 1.0 - kept / evaluations if evaluations else 0.0
    share = kept_gain / gain if gain > 0.0 else 1.0
    return (
        f"{grid(heads, rows, ('kernel', 'stops after'))}\n\n{len(found)} runs: {kept} of"
        f" {evaluations} evaluations, {saved:.1%} saved; {share:.1%} of the gain kept (sums of"
        " ln of the best speed over the start's).\n"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What the stop rule of a plain copy saves.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--copies", type=Path, metavar="FILE", help="of bench_headroom.py")
    parser.add_argument("--least", type=float, help="in place of early_stop_min_improvement")
    options = parser.parse_args()
    copies: dict[str, float] = {}
    if options.copies is not None:
        known = Headroom.model_validate_json(options.copies.read_text("utf-8"))
        copies = {row.kernel: row.copy_time.latency.median_us for row in known.rows}
    found: list[Replay] = []
    for folder in run_folders(options.folders):
        run = read_run(folder, copies)
        changes: dict[str, object] = {"headroom_stop": "on"}
        if options.least is not None:
            changes["early_stop_min_improvement"] = options.least
        found.append(replay(run, run.state.settings.search.model_copy(update=changes)))
    print(table(found), end="")


if __name__ == "__main__":
    main()
