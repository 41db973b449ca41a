"""Write docs/tried.md from the records of what was tried and the receipts of the winners.

    .venv/bin/python benchmarks/tried_page.py [--write docs/tried.md]

Nothing is measured here. The records come from benchmarks/kept_runs.py.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_tables import grid
from tried_records import FOLDER, Tried, TriedSource, read_tried
from tried_sections import OVERVIEW, TEXTS, KernelTried, kernel_section, overview_row
from tried_winners import Winner, read_winners

from kopt.kernels.problem_loader import load_problems
from kopt.search.reports.markdown_text import plain

INTRODUCTION = """\
# What was tried

Every candidate that was evaluated in the kept runs on a GPU, with its verdict: those that won,
those that lost and those that were wrong. [results.md](results.md) says what came of it and why;
here is what it was chosen from. Written by `benchmarks/tried_page.py` from `benchmarks/tried/`, one
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
  below, of which only figures were kept: those in [results.md](results.md) that are not here.

Three commands add a run:

    kopt runs export RUN --to RUN.jsonl
    .venv/bin/python benchmarks/kept_runs.py RUN.jsonl
    .venv/bin/python benchmarks/tried_page.py --write docs/tried.md
"""


def tried_page(tried: dict[str, Tried], winners: Sequence[Winner]) -> str:
    """Return the page.

    Args:
        tried: By problem, in the order of the sections.
        winners: Of all problems.
    """
    every = [one for part in tried.values() for one in part.candidates]
    parts = [INTRODUCTION]
    for device in sorted({one.device for one in every}):
        parts.extend(_device_parts(device, tried, winners))
    return "\n".join(parts)


def shipped_page(folder: Path = FOLDER) -> str:
    """Return the page of the records that come with kopt."""
    problems = list(load_problems().values())
    tried = {problem.name: read_tried(folder / f"{problem.name}.jsonl") for problem in problems}
    return tried_page(tried, [winner for one in problems for winner in read_winners(one)])


def _device_parts(device: str, tried: dict[str, Tried], winners: Sequence[Winner]) -> Iterator[str]:
    here = {name: list(_kernels(device, part, winners)) for name, part in tried.items()}
    every = [one for kernels in here.values() for kernel in kernels for one in kernel.candidates]
    drivers = sorted({f"driver {one.driver}, CUDA {one.cuda}" for one in every})
    dates = sorted({one.date for one in every})
    span = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    yield f"## {device}\n"
    yield f"{'; '.join(drivers)}; {span}. {len(every)} candidates.\n"
    rows = [overview_row(kernel) for kernels in here.values() for kernel in kernels]
    yield f"{grid(OVERVIEW, rows, TEXTS)}\n"
    for name, kernels in here.items():
        if kernels:
            used = {one.source for kernel in kernels for one in kernel.candidates}
            yield f"### {name}\n"
            yield from _ideas([one for one in tried[name].sources if one.sha in used])
            yield from map(kernel_section, kernels)


def _kernels(device: str, tried: Tried, winners: Sequence[Winner]) -> Iterator[KernelTried]:
    """Yield what was tried on `device`, small kernels first."""
    sources = {one.sha: one for one in tried.sources}
    promoted = {one.kernel: one for one in winners if one.device == device}
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
    """Print or write."""
    parser = argparse.ArgumentParser(description="What was tried, as a page.")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    page = shipped_page()
    if options.write is None:
        print(page, end="")
    else:
        options.write.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
