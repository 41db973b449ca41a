"""The fastest candidates that earlier runs of a kernel id found, one for each GPU."""

from collections.abc import Iterator

from kopt import __version__
from kopt.config.errors import KoptError
from kopt.config.folder_owner import may_see
from kopt.config.settings import Settings
from kopt.kernels.best_known import BestKnown, MeasuredWinner
from kopt.kernels.shipped_kernels import HIDING_SOURCE
from kopt.search.records.members import Member
from kopt.search.records.run_state import RunState
from kopt.search.selection.ranking import rank
from kopt.search.store.run_folders import run_folders

from .run_report import view_run

MOST_RUNS = 100
"""Runs that are looked through, newest first: each is a file to open."""


def best_of_runs(
    kernel: str, owner: str, settings: Settings, without: str = ""
) -> tuple[BestKnown, ...]:
    """Return the fastest candidate of all runs that `owner` may see, by GPU or architecture.

    The run `without` and the kernels that runs began with are left out.

    None where earlier results are hidden (KOPT_WITHOUT_SOURCES=winners). Runs that cannot be read
    are passed over: `kopt runs` names them.
    """
    if HIDING_SOURCE in settings.without_sources:
        return ()
    best: dict[tuple[str, bool], BestKnown] = {}
    for found in _found(kernel, owner, settings, without):
        where = (found.arch if found.measured is None else found.measured.gpu, bool(found.measured))
        if where not in best or found.time_us < best[where].time_us:
            best[where] = found
    return tuple(best.values())


def _found(kernel: str, owner: str, settings: Settings, without: str) -> Iterator[BestKnown]:
    others = (folder for folder in run_folders(settings) if folder.name != without)
    visible = (folder for folder in others if may_see(owner, folder))
    for number, folder in enumerate(visible):
        if number == MOST_RUNS:
            return
        try:
            with view_run(folder.name, settings) as (reader, _):
                state = reader.state()
                if state.settings.kernel != kernel:
                    continue
                members = reader.members()
                leader = next(iter(rank(members)), None)
                best = leader if state.winner is None else members[state.winner]
                known = None if best is None or best.seq == 0 else _known(best, state)
        except (KoptError, ValueError, LookupError, TypeError):  # a damaged run hides no other
            continue
        if known is not None:
            yield known


def _known(best: Member, state: RunState) -> BestKnown | None:
    timed = best.full if best.full is not None and best.full.speedup is not None else best.timing
    if timed is None or timed.latency is None or timed.latency.value is None:
        return None
    gpu = state.settings.gpu
    if gpu is None and state.kopt_version != __version__:
        return None  # estimates of another version do not compare
    measured = None
    if gpu is not None:
        speedup = timed.speedup
        measured = MeasuredWinner(
            latency_us=timed.latency.value,
            gpu=gpu.name,
            speedup=None if speedup is None else speedup.value,
            baseline=None if speedup is None else speedup.unit,
        )
    return BestKnown(
        standing="run",
        arch=state.settings.arch,
        source=f"kopt://runs/{state.id}/candidates/{best.seq}",
        tune=best.tune,
        measured=measured,
        estimated_us=timed.latency.value if gpu is None else None,
    )
