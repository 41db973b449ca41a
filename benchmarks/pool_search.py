"""`bench_pool.py` has the same search done on some GPUs: `kopt run` without models, with one seed.

The search is left before its winner would be proven: that takes one GPU, however many there are.
Nothing is remembered from one search to the next, but for what was compiled.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from pool_verdicts import bench_of

from kopt.config.search_settings import load_search_settings
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.status import Provenance
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import Budget
from kopt.search.records.members import Member
from kopt.search.records.run_state import Event, EventKind
from kopt.search.reports.pace import measure_pace
from kopt.search.rounds.advance import run_search
from kopt.search.runs.parts import RunPlace, search_of
from kopt.search.runs.run import RunRequest, begin_run
from kopt.search.selection.ranking import rank
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import as_timer

_END_OF_SEARCH = EventKind.FINAL_CHECK


class SearchIsLeft(KeyboardInterrupt):
    """An interruption that leaves a run paused, as Ctrl-C does."""


@dataclass(frozen=True)
class SearchFigures:
    """What a search came to."""

    way: str
    gpus: int
    wall_s: float
    evaluations: int
    twice: int
    """How many results came beyond the first of a candidate at a level."""
    requeued: int
    """How many evaluations were begun anew, because the machine failed under them."""
    best: str
    """The leader: its number, file and tune values."""
    speed: str
    """Its speedup with the interval, or its estimated time."""
    start_ratio: float | None
    """How many times as fast as the start it is."""
    timings: int
    """How many evaluations were timed in pairs."""
    by_gpu: tuple[int, ...]
    """How many name each GPU that was used: candidate and baseline of one were timed there."""


def measure_search(
    row: tuple[str, int], kernel: str, evaluations: int, at: EvaluationSite
) -> SearchFigures:
    """Search once, with a budget of `evaluations`, and return what is known of it.

    Args:
        row: Way and number of GPUs.
        kernel: Kernel id.
        evaluations: Candidates that are evaluated.
        at: The device.

    Raises:
        KoptError: This machine cannot evaluate.
    """
    settings: Settings = at.settings
    request = RunRequest(
        kernel=kernel,
        device=at.device.name,
        gpu=None if at.timer is None else at.timer.facts,
        arch=arch_of(at.device),
        search=load_search_settings().model_copy(update={"memory": "off"}),
        budget=Budget(evaluations=evaluations),
        asks_models=False,
    )
    with closing(begin_run(request, settings)) as store:
        site = replace(at, artifacts=store.artifacts)
        with search_of(store, RunPlace(site)) as search, suppress(SearchIsLeft):
            run_search(replace(search, promote=None), _leave)
        reader = store.reader
        members, events = reader.members(), reader.events()
        found = [one for member in members for one in (member.quick, member.tie) if one]
        benches = [bench for one in found if (bench := bench_of(one, site.artifacts)) is not None]
        pace = measure_pace(reader)
        results = Counter(
            (one.data["candidate"], one.data["level"])
            for one in events
            if one.kind is EventKind.EVALUATION_DONE
        )
        ranking = rank(members)
        leader = ranking[0] if ranking else None
        return SearchFigures(
            *row,
            wall_s=reader.state().spent_s,
            evaluations=pace.evaluations,
            twice=sum(results.values()) - len(results),
            requeued=sum(one.kind is EventKind.EVALUATION_REQUEUED for one in events),
            best="none" if leader is None else _named(leader),
            speed="-" if leader is None else _speed_words(leader),
            start_ratio=_over_start(members, leader),
            timings=len(benches),
            by_gpu=by_gpu(benches),
        )


def arch_of(device: Device) -> str:
    """Return what candidates are compiled for; on simulators Hopper, whose kernels have most."""
    timer = as_timer(device)
    return "sm_90a" if timer is None else timer.facts.arch


def by_gpu(benches: Iterable[BenchResult]) -> tuple[int, ...]:
    """Return how many benchmarks each GPU has made, the most first."""
    counts = Counter(one.gpu.uuid for one in benches if one.gpu is not None)
    return tuple(sorted(counts.values(), reverse=True))


def one_gpu_words(found: SearchFigures) -> str:
    """Return where what is compared was measured, in a sentence."""
    row = f"{found.way}, {found.gpus} GPU{'' if found.gpus == 1 else 's'}"
    if not found.timings:
        return f"{row}: nothing was timed: simulators measure no time"
    share = " + ".join(map(str, found.by_gpu))
    return (
        f"{row}: {sum(found.by_gpu)} of {found.timings} timed evaluations name one GPU, on which"
        f" candidate and baseline were replayed in pairs; by GPU {share}"
    )


def _leave(event: Event) -> None:
    if event.kind is _END_OF_SEARCH:
        raise SearchIsLeft


def _named(member: Member) -> str:
    values = " ".join(f"{name}={value}" for name, value in member.tune.items())
    return f"#{member.seq} {member.source_name} {values}".strip()


def _speed_words(member: Member) -> str:
    timing = member.timing
    if timing is None:
        return "-"
    if timing.speedup is not None and timing.speedup.value and timing.speedup_interval:
        low, high = timing.speedup_interval
        return f"{timing.speedup.value:.3f} ({low:.3f} to {high:.3f})"
    latency = timing.latency
    if latency is None or latency.value is None:
        return "-"
    how = Provenance(latency.provenance).value
    return f"{latency.value:.3f} us {how}"


def _over_start(members: tuple[Member, ...], leader: Member | None) -> float | None:
    start = members[0].cost if members else None
    best = None if leader is None else leader.cost
    return None if start is None or not best else start / best
