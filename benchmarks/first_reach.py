"""Count candidates to 95 % of the best, with memory and without, in runs that asked no model.

    .venv/bin/python benchmarks/first_reach.py FOLDER ... [--share 0.95]

FOLDER is a run's, or one with runs in it, as KOPT_HOME/runs. The first round of such a run has the
same candidates with memory and without, but for the one of all techniques that memory expects to
gain; memory decides their order. So the other order, that of `memory: "off"`, is told from the same
measurements: the plain kernel, every technique, those for many rows, each technique alone.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from markdown_tables import grid
from stop_rule import StoredRun, read_run, run_folders

from kopt.search.records.members import Member
from kopt.search.selection.ranking import speed_of, unrefuted
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES

_WRITTEN = "generated"
Techniques = frozenset[str]


def reach(run: StoredRun, share: float) -> tuple[int, int | None, Techniques] | None:
    """Return the candidates to `share` of the best with memory, and without, and what memory hoped.

    None for a run without kernels that kopt wrote. Without memory: None where the first round alone
    does not come so far.
    """
    written = [one for one in unrefuted(run.members) if one.source_name.startswith(_WRITTEN)]
    timed = [(one, speed.value) for one in written if (speed := speed_of(one)) is not None]
    if not timed:
        return None
    enough = share * max(value for _, value in timed)
    first: dict[Techniques, float] = {}
    for one, value in timed:
        if one.round == timed[0][0].round:
            first.setdefault(_techniques(one), value)
    order = [one for one in _without_memory(max(first, key=len)) if one in first]
    with_memory = next(place for place, (_, value) in enumerate(timed, 1) if value >= enough)
    places = (place for place, one in enumerate(order, 1) if first[one] >= enough)
    hoped = [_techniques(one) for one, _ in timed[1:2]]
    return with_memory, next(places, None), hoped[0] if hoped else frozenset()


def _techniques(member: Member) -> Techniques:
    return frozenset(member.source_name.removesuffix(".cu").split("-")[1:])


def _without_memory(every: Techniques) -> Iterator[Techniques]:
    """Yield the sets of the first round in the order of `memory: "off"`."""
    few = {name for name in every if TECHNIQUES[name].is_for_few_rows}
    alone = (frozenset((name,)) for name in TECHNIQUES if name in every)
    yield from dict.fromkeys((frozenset[str](), every, every - few, *alone))


def table(runs: Sequence[StoredRun], share: float) -> str:
    """Return a row for each run and the means."""
    rows: list[tuple[str, ...]] = []
    both: list[tuple[int, int]] = []
    for run in runs:
        found = reach(run, share)
        if found is None:
            continue
        with_memory, without, hoped = found
        if without is not None:
            both.append((with_memory, without))
        told = "-" if without is None else str(without)
        names = ", ".join(name for name in TECHNIQUES if name in hoped)
        rows.append((run.state.settings.kernel, str(with_memory), told, names))
    heads = ("kernel", "with memory", "without", "the second candidate")
    shown = grid(heads, rows, (heads[0], heads[-1]))
    if not both:
        return shown
    ours, theirs = (fmean(one[place] for one in both) for place in (0, 1))
    return f"{shown}\n\nmeans of {len(both)} runs: {ours:.2f} with memory, {theirs:.2f} without"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--share", type=float, default=0.95)
    options = parser.parse_args()
    runs = [read_run(folder, {}) for folder in run_folders(options.folder)]
    print(table(runs, options.share))


if __name__ == "__main__":
    main()
