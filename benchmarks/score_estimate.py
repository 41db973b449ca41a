"""Score the estimate against all kept measurements, and fit its constants on other problems.

    .venv/bin/python benchmarks/score_estimate.py [--kernel PART ...] [--fit] [--tried FOLDER]

Nothing is measured here: the times are those of benchmarks/tried, or of another folder that
kept_runs.py has written (--to), each with the data sheet of the GPU that it was measured on.
Without --fit the constants are those of the model. With it they are fitted anew six times, each on
five problems, and judged on the sixth (leave-one-problem-out), which tells what the model is worth
on a problem that it has not seen. The first call compiles and follows every program, some 400, a
second or two each.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from statistics import mean

from estimate_programs import TimedProgram, kept_programs, timed_programs
from estimate_scores import HEADS, Point, loss, picks, ratio_interval, score, share_inside
from markdown_tables import grid
from tried_records import FOLDER

from kopt.config.settings import settings_from_environment
from kopt.tools.estimate.machine.timing_constants import Clocks
from kopt.tools.estimate.stage import INTERVAL_RATE, RESOLUTION

TRIED: dict[str, tuple[float, ...]] = {
    "dram": (650, 800, 950, 1100),
    "completion_us": (0.3, 0.45, 0.6, 0.75),
    "early_launch_us": (0.3, 0.5, 0.7, 0.9),
    "dram_efficiency": (0.7, 0.75, 0.82, 0.9),
    "l2_bytes": (3072, 4500),
    "fetch": (3, 8, 15),
    "barrier": (15, 30, 60),
    "cluster_skew": (0.0, 0.05, 0.1, 0.15),
    "early_placement_us": (0, 0.15, 0.3, 0.45),
    "launch_us": (0.6, 0.75, 0.9, 1.1),
}
"""Values of the constants that no source tells, fitted one after the other."""
_OF_A_KERNEL = 6
"""Programs of a kernel that a fit goes by, spread over their times."""


def main() -> None:
    """Print a row for each problem, and one for all."""
    parser = argparse.ArgumentParser(description="Score the estimate by kept measurements.")
    parser.add_argument("--kernel", nargs="+", default=[], help="parts of kernel ids")
    parser.add_argument("--fit", action="store_true", help="leave one problem out: an hour")
    parser.add_argument("--cache", type=Path, default=Path("build/estimate"), help="kept ways")
    parser.add_argument("--tried", type=Path, default=FOLDER, help="records of measured programs")
    options = parser.parse_args()
    kept = kept_programs(options.tried, options.kernel)
    programs = list(timed_programs(kept, options.cache, settings_from_environment()))
    every: list[Point] = []
    rows: list[list[str]] = []
    for problem in sorted({one.kept.problem for one in programs}):
        own = [one for one in programs if one.kept.problem == problem]
        others = [one for one in programs if one.kept.problem != problem]
        clocks = fitted(others) if options.fit else Clocks()
        found = points(own, clocks)
        every += found
        rows.append([problem, *score(found, RESOLUTION).row()])
        if options.fit:
            print(f"{problem}: {_changes(clocks)}", flush=True)
    rows += [
        [f"all, tied below {tied:.0%}", *score(every, tied).row()] for tied in (0.01, 0.02, 0.03)
    ]
    rows.append([f"all, tied below {RESOLUTION:.1%}", *score(every, RESOLUTION).row()])
    print(grid(("problem", *HEADS), rows, ("problem",)))
    _print_intervals(every, {one.kept.kernel: one.kept.problem for one in programs})
    slower = picks(every)
    for kernel, tau in sorted(score(every, RESOLUTION).taus.items()):
        print(f"{kernel}: tau {tau:+.2f}; the least estimate / fastest {slower[kernel]:.3f}")


def _print_intervals(every: Sequence[Point], problems: Mapping[str, str]) -> None:
    """Print where measured / estimated lies, and how often it does on a problem left out."""
    least, most = ratio_interval(every, INTERVAL_RATE)
    held: list[float] = []
    for problem in sorted(set(problems.values())):
        own = [point for point in every if problems[point.kernel] == problem]
        others = [point for point in every if problems[point.kernel] != problem]
        if others:
            held += share_inside(own, ratio_interval(others, INTERVAL_RATE))
    print(f"measured / estimated {least:.3f} to {most:.3f} for {INTERVAL_RATE:.0%} of the programs")
    if held:
        print(f"such an interval of the other problems holds for {mean(held):.0%}")


def points(programs: Sequence[TimedProgram], clocks: Clocks) -> list[Point]:
    """Return the programs with their estimated times."""
    return [Point(one.kept.kernel, one.kept.measured_us, one.time_us(clocks)) for one in programs]


def fitted(programs: Sequence[TimedProgram]) -> Clocks:
    """Return constants with which the times of `programs` come out best, one by one."""
    chosen = _spread(programs)
    clocks = Clocks()
    least = loss(points(chosen, clocks))
    for name, values in TRIED.items():
        for value in values:
            other = replace(clocks, **{name: value})
            found = loss(points(chosen, other))
            if found < least:
                clocks, least = other, found
    return clocks


def _spread(programs: Sequence[TimedProgram]) -> list[TimedProgram]:
    chosen: list[TimedProgram] = []
    for kernel in sorted({one.kept.kernel for one in programs}):
        own = [one for one in programs if one.kept.kernel == kernel]
        own.sort(key=lambda one: one.kept.measured_us)
        count = min(len(own), _OF_A_KERNEL)
        places = [place * (len(own) - 1) // max(1, count - 1) for place in range(count)]
        chosen += [own[place] for place in places]
    return chosen


def _changes(clocks: Clocks) -> str:
    usual = Clocks()
    changed = {
        one.name: getattr(clocks, one.name)
        for one in fields(Clocks)
        if getattr(clocks, one.name) != getattr(usual, one.name)
    }
    return ", ".join(f"{name} {value:g}" for name, value in changed.items()) or "as they are"


if __name__ == "__main__":
    main()
