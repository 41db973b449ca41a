"""The rows of `bench_pool.py`, and the tables that are made of them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_tables import grid
from pool_search import SearchFigures
from pool_sweep import SweepOutcome
from pool_verdicts import EXPECTED, AgreementCount, least_agreeing

_UNKNOWN = "-"


@dataclass(frozen=True)
class KillFigures:
    """What became of a sweep in which a process was killed."""

    killed: str
    """What, or that there was nothing to kill."""
    evaluations_a_minute: float
    back_s: float | None
    """After so long the GPU evaluated again; None where that was not seen."""
    lost: int
    repeated: int
    twice: int


@dataclass(frozen=True)
class PoolRow:
    """What one way came to on a number of GPUs."""

    way: str
    gpus: int
    evaluations_a_minute: float
    busy_share: float | None
    """Time in which evaluations held a GPU / (GPUs x elapsed time); None on simulators."""
    wait_p50_s: float
    """An evaluation's time beyond what it held the GPU: compiling, judging, waiting its turn."""
    wait_p95_s: float
    lost: int
    repeated: int
    twice: int
    """Candidates with more than one result."""
    passed: int
    kill: KillFigures | None = None
    agreement: AgreementCount | None = None
    """With the first row; None for that itself."""
    utilization: float | None = None
    """The share of time in which a kernel ran, as NVML says; None where it says nothing."""


def row_of(way: str, gpus: int, outcome: SweepOutcome) -> PoolRow:
    """Return the figures of a sweep, without what was killed and compared."""
    waits = [one.found.elapsed_s - one.found.gpu_seconds for one in outcome.done] or [0.0]
    gpu_s = sum(one.found.gpu_seconds for one in outcome.done)
    return PoolRow(
        way=way,
        gpus=gpus,
        evaluations_a_minute=a_minute(outcome),
        busy_share=gpu_s / outcome.took_s / gpus if gpu_s else None,
        wait_p50_s=statistics.median(waits),
        wait_p95_s=statistics.quantiles(waits, n=20)[-1] if len(waits) > 1 else waits[0],
        lost=outcome.lost,
        repeated=outcome.repeated,
        twice=outcome.twice,
        passed=sum(one.found.status == "passed" for one in outcome.done),
    )


def a_minute(outcome: SweepOutcome) -> float:
    """Return the evaluations a minute."""
    return 60 * len(outcome.done) / outcome.took_s


def speed_up(row: PoolRow, rows: Sequence[PoolRow]) -> float | None:
    """Return how many times the evaluations of one GPU by the same way; None without that row."""
    alone = [one for one in rows if (one.way, one.gpus) == (row.way, 1)]
    return row.evaluations_a_minute / alone[0].evaluations_a_minute if alone else None


def sweep_table(rows: Sequence[PoolRow]) -> str:
    """Return a line a row, without what was killed."""
    lines: list[tuple[str, ...]] = []
    for row in rows:
        gain = speed_up(row, rows)
        lines.append(
            (
                row.way,
                str(row.gpus),
                f"{row.evaluations_a_minute:.1f}",
                _number(gain),
                _number(None if gain is None else gain / row.gpus),
                _number(row.busy_share),
                _number(row.utilization),
                f"{row.wait_p50_s:.2f} / {row.wait_p95_s:.2f}",
                f"{row.lost} / {row.repeated} / {row.twice}",
                str(row.passed),
            )
        )
    heads = (
        "way",
        "GPUs",
        "evaluations a minute",
        "speed-up",
        "efficiency",
        "GPU held",
        "GPU busy",
        "wait p50 / p95 s",
        "lost / repeated / twice",
        "passed",
    )
    return grid(heads, lines, texts=("way",))


def kill_table(rows: Sequence[PoolRow]) -> str:
    """Return a line for each sweep in which a process was killed; "" without any."""
    lines = [
        (
            row.way,
            str(row.gpus),
            kill.killed,
            "not seen" if kill.back_s is None else f"{kill.back_s:.1f}",
            f"{kill.evaluations_a_minute:.1f}",
            f"{kill.evaluations_a_minute / row.evaluations_a_minute:.2f}",
            f"{kill.lost} / {kill.repeated} / {kill.twice}",
        )
        for row in rows
        if (kill := row.kill) is not None
    ]
    heads = (
        "way",
        "GPUs",
        "killed",
        "back after s",
        "evaluations a minute",
        "of the undisturbed",
        "lost / repeated / twice",
    )
    return grid(heads, lines, texts=("way", "killed")) if lines else ""


def agreement_table(rows: Sequence[PoolRow]) -> str:
    """Return how the verdicts of each row compare with those of the first; "" without others."""
    lines = [
        (
            row.way,
            str(row.gpus),
            str(found.compared),
            _share(found.within, found.compared),
            str(least_agreeing(found.compared)),
            _share(found.widened, found.compared),
            str(found.same_verdict),
            str(found.opposite),
            f"{found.largest_percent:.2f}",
            str(found.not_compared),
        )
        for row in rows
        if (found := row.agreement) is not None
    ]
    heads = (
        "way",
        "GPUs",
        "compared",
        f"within intervals ({EXPECTED:.0%} expected)",
        "least by chance",
        "within intervals and noise floors",
        "same verdict",
        "opposite",
        "largest difference %",
        "not compared",
    )
    return grid(heads, lines, texts=("way",)) if lines else ""


def search_table(found: Sequence[SearchFigures]) -> str:
    """Return a line a search; "" without any."""
    alone = {one.way: one.wall_s for one in found if one.gpus == 1}
    lines = [
        (
            one.way,
            str(one.gpus),
            f"{one.wall_s:.1f}",
            _number(alone[one.way] / one.wall_s if one.way in alone and one.wall_s else None),
            str(one.evaluations),
            f"{one.requeued} / {one.twice}",
            one.best,
            one.speed,
            _number(one.start_ratio),
            " + ".join(map(str, one.by_gpu)) or _UNKNOWN,
        )
        for one in found
    ]
    heads = (
        "way",
        "GPUs",
        "wall s",
        "speed-up",
        "evaluations",
        "repeated / twice",
        "best",
        "its speed",
        "over the start",
        "timed on each GPU",
    )
    return grid(heads, lines, texts=("way", "best", "its speed")) if lines else ""


def _number(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.2f}"


def _share(part: int, whole: int) -> str:
    return f"{part} ({part / whole:.0%})" if whole else _UNKNOWN
