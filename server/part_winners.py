"""The kernel of each part of a split network: of runs, promoted, of a folder, or named."""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.shipped_kernels import evidence_of, kernels_in
from kopt.kernels.status import Provenance
from kopt.search.reports.run_list import RunSummary, list_runs, read_summary
from kopt.tools.pytorch.stitching.stage import Chosen, SplitFolder
from kopt.tools.suite.kernel_choice import RUN, WINNER

REFERENCE = "reference"
_ARCH_IN_NAME = re.compile(r"\.(sm_\d+[a-z]?)\.(?:cu|receipt\.json|facts\.json)$")


def chosen_kernels(
    given: SplitFolder, winners: str, named: Sequence[str], how: tuple[str, Settings]
) -> dict[str, Chosen]:
    """Return a kernel of parts by name; a part without one is left to its reference.cu.

    Args:
        given: The split.
        winners: `run`, `winner`, `reference`, or a folder of <part>.cu.
        named: `PART=FILE`, which come first.
        how: The architecture that kernels must be for, and the settings.

    Raises:
        ToolError: A name, a folder or a file is none, or a file is for another architecture.
    """
    arch, settings = how
    found = _from(given, winners, arch, settings)
    for text in named:
        part, equals, file = text.partition("=")
        if not equals or not file:
            raise ToolError(f"--use {text!r} is not of the form PART=FILE.cu")
        found[given.named(part)] = Chosen(Path(file), "named")
    _refuse_other_architectures(found.values(), arch, settings)
    return found


def _refuse_other_architectures(kernels: Iterable[Chosen], arch: str, settings: Settings) -> None:
    """Refuse a file that is known to be for other architectures only.

    Receipts and facts beside it say so, its name, or the run whose winner it is. Any other file is
    for whatever it compiles for, which the check of the whole finds out.
    """
    for file in (one.file for one in kernels):
        made_for = _architectures_of(file, settings)
        if made_for and arch not in made_for:
            named = " and ".join(sorted(made_for))
            raise ToolError(
                f"{file} is for {named}, and --arch is {arch}: name a kernel for {arch}, or stitch"
                f" for the other, --arch {min(made_for)}"
            )


def _architectures_of(file: Path, settings: Settings) -> set[str]:
    """Return the architectures that `file` is known to be for; none where nothing says so."""
    names = [file.name, *(one.name for one in evidence_of(file))]
    found = {match[1] for name in names if (match := _ARCH_IN_NAME.search(name))}
    place = file.resolve()
    if not found and place.is_relative_to(settings.home.resolve()):
        run = read_summary(place.parent, settings)
        if (
            isinstance(run, RunSummary)
            and run.winner_path
            and Path(run.winner_path).resolve() == place
        ):
            return {run.arch}
    return found


def _from(given: SplitFolder, winners: str, arch: str, settings: Settings) -> dict[str, Chosen]:
    if winners == REFERENCE:
        return {}
    if winners == RUN:
        runs = [one for one in list_runs(settings).runs if one.arch == arch]
        return _present(given, {n: _best_run(p, runs) for n, p in given.parts.items()})
    if winners == WINNER:
        promoted = {n: _promoted(p, arch, settings) for n, p in given.parts.items()}
        return _present(given, promoted)
    folder = Path(winners)
    if not folder.is_dir():
        raise ToolError(
            f"--winners {winners}: no such folder; allowed: run, winner, reference, or a folder of"
            " files named after the parts, <part>.cu"
        )
    files = {path.stem: path for path in sorted(folder.glob("*.cu"))}
    if not files:
        raise ToolError(f"--winners {winners}: no <part>.cu lies in it")
    return {given.named(name): Chosen(path, winners) for name, path in files.items()}


def _present(given: SplitFolder, found: Mapping[str, Chosen | None]) -> dict[str, Chosen]:
    return {name: one for name, one in found.items() if one is not None}


def _best_run(problem: Problem, runs: Sequence[RunSummary]) -> Chosen | None:
    """Return the fastest winner of the runs of a part; of its timed shape before others."""
    own = [
        one
        for one in runs
        if one.kernel in problem.kernel_ids
        and one.winner_path is not None
        and Path(one.winner_path).is_file()
    ]
    timed = problem.kernel_id(problem.workloads[-1])
    own = [one for one in own if one.kernel == timed] or own
    if not own:
        return None
    best = min(own, key=_by_time)
    return Chosen(Path(best.winner_path or ""), best.run)


def _by_time(run: RunSummary) -> tuple[bool, float]:
    """Order runs by the time of their winners: measured times before estimates."""
    time_us = run.best_latency_us
    return run.provenance is not Provenance.MEASURED, inf if time_us is None else time_us


def _promoted(problem: Problem, arch: str, settings: Settings) -> Chosen | None:
    for workload in reversed(problem.workloads):
        for kernel in kernels_in(settings.winners / problem.name, workload):
            if kernel.standing == "winner" and kernel.arch == arch and kernel.source.is_file():
                return Chosen(kernel.source, "promoted")
    return None
