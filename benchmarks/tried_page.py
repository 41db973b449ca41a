"""Print what was tried, from the records of runs and the receipts of the winners.

    .venv/bin/python benchmarks/tried_page.py [--write docs/results.md]

--write puts only the first table of each device into a document, between two lines of its own.
Nothing is measured here. The records come from benchmarks/kept_runs.py.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_tables import grid, insert_between
from tried_records import FOLDER, Tried, TriedSource, Winner, read_tried, read_winners
from tried_sections import OVERVIEW, TEXTS, KernelTried, kernel_section, overview_row

from kopt.kernels.problem_loader import load_problems
from kopt.search.reports.markdown import plain

MARKS = ("<!-- tried: written by benchmarks/tried_page.py -->", "<!-- end of tried -->")
INTRODUCTION = """\
# What was tried

Every candidate that was evaluated in the kept runs on a GPU, with its verdict: those that won,
those that lost and those that were wrong. docs/results.md says what came of it and why;
here is what it was chosen from. Printed by `benchmarks/tried_page.py` from `benchmarks/tried/`, one
file of JSON lines a problem: each source once with its text, each candidate with its run, tune
values, status, ratio, interval, times, registers and spills.

- A ratio is baseline time / kernel time, measured in pairs within the run, with its 95 % interval.
  It has no receipt. *faster* and *slower*: the whole interval lies beyond the noise.
  *inconclusive*: it does not. *failed*: why is listed below the kernel's table.
- A best choice is picked after all were measured, so that its ratio is a little too good. Those of
  *promoted* are measured anew, in fresh processes.
- Ratios of one kernel against one baseline compare, to a percent only within a run or a GPU; times
  of different runs do not. *GPU* is the beginning of its UUID, - where it was not kept.
- *code* names the text below a source's header without its comments, as in the field `code` of the
  records; sources of one code differ in the values they list and in what they say of themselves.
  kopt's own headers are those of the day. *reached* is the best ratio among a code's candidates
  with that value.
- Not here: candidates whose run was stopped before their turn, and sweeps before the first run
  below, of which only figures were kept: those in docs/results.md that are not here.

Three commands add a run:

    kopt runs export RUN --to RUN.jsonl
    .venv/bin/python benchmarks/kept_runs.py RUN.jsonl
    .venv/bin/python benchmarks/tried_page.py --write docs/results.md
"""


def tried_page(tried: dict[str, Tried], winners: Sequence[Winner]) -> str:
    """Return the page.

    Args:
        tried: By problem, in the order of the sections.
        winners: Of all problems.
    """
    devices = sorted({one.device for part in tried.values() for one in part.candidates})
    parts = (
        f"## {_overview(one, tried, winners)}{_details(one, tried, winners)}" for one in devices
    )
    return "\n".join((INTRODUCTION, *parts))


def shipped() -> tuple[dict[str, Tried], list[Winner]]:
    """Return the records that come with kopt, and its winners."""
    problems = list(load_problems().values())
    tried = {problem.name: read_tried(FOLDER / f"{problem.name}.jsonl") for problem in problems}
    return tried, [winner for one in problems for winner in read_winners(one)]


def shipped_overview() -> str:
    """Return the first table of each device, as docs/results.md has it."""
    tried, winners = shipped()
    devices = sorted({one.device for part in tried.values() for one in part.candidates})
    return "\n".join(_overview(one, tried, winners) for one in devices)


def _overview(device: str, tried: dict[str, Tried], winners: Sequence[Winner]) -> str:
    """Return how many candidates each kernel had on `device`, and which was the best."""
    kernels = [one for part in tried.values() for one in _kernels(device, part, winners)]
    every = [one for kernel in kernels for one in kernel.candidates]
    drivers = sorted({f"driver {one.driver}, CUDA {one.cuda}" for one in every})
    dates = sorted({one.date for one in every})
    span = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    words = f"{device}, {'; '.join(drivers)}; {span}. {len(every)} candidates."
    rows = [overview_row(kernel) for kernel in kernels]
    return f"{words}\n\n{grid(OVERVIEW, rows, TEXTS)}\n"


def _details(device: str, tried: dict[str, Tried], winners: Sequence[Winner]) -> str:
    """Return every choice of each kernel on `device`, by problem."""
    parts: list[str] = []
    for name, part in tried.items():
        if kernels := list(_kernels(device, part, winners)):
            used = {one.source for kernel in kernels for one in kernel.candidates}
            ideas = _ideas([one for one in part.sources if one.sha in used])
            parts += (f"\n### {name}\n", *ideas, *map(kernel_section, kernels))
    return "\n".join(parts)


def _kernels(device: str, tried: Tried, winners: Sequence[Winner]) -> Iterator[KernelTried]:
    """Yield what was tried on `device`, small kernels first."""
    sources = {one.sha: one for one in tried.sources}
    elsewhere_first = sorted(winners, key=lambda one: one.device == device)
    promoted = {one.kernel: one for one in elsewhere_first}
    here = [one for one in tried.candidates if one.device == device]
    for kernel in sorted({one.kernel for one in here}, key=_by_size):
        some = [one for one in here if one.kernel == kernel]
        yield KernelTried(kernel, some, sources, promoted.get(kernel))


def _by_size(kernel: str) -> list[tuple[int, str]]:
    """Return what sorts numbers in a name by their size: b8 comes before b128."""
    return [(int(part or 0), name) for name, part in re.findall(r"(\D*)(\d*)", kernel)]


def _ideas(sources: Sequence[TriedSource]) -> Iterator[str]:
    """Yield each hypothesis with the codes that carry it out."""
    for note in dict.fromkeys(one.note for one in sources):
        codes = dict.fromkeys(one.code for one in sources if one.note == note)
        yield f"- code {', '.join(f'`{code}`' for code in codes)}: {plain(note) or 'no note.'}"
    yield ""


def main() -> None:
    """Print the page, or write the overview."""
    parser = argparse.ArgumentParser(description="What was tried.")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.write is None:
        print(tried_page(*shipped()), end="")
    else:
        document = options.write.read_text("utf-8")
        options.write.write_text(insert_between(document, MARKS, shipped_overview()), "utf-8")


if __name__ == "__main__":
    main()
