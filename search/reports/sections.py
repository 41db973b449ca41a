"""What a report says in words and tables, for any form of page: nothing here is escaped yet.

Every number says how it came about, or stands under a heading that does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kopt.config.counted import counted
from kopt.kernels.status import Provenance

from .candidate_report import CandidateReport, ratio_words
from .run_report import RunReport
from .spending import usd_words


@dataclass(frozen=True)
class Table:
    """Text in rows; a column whose head ends with `#` is of numbers."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    """What the numbers are, and how the rows are ordered."""


@dataclass(frozen=True)
class Yardstick:
    """What candidates of a run are compared by: one number each, more is better.

    Measured: the speedup over the baseline, from paired replays. Estimated, on sim: how many times
    shorter than the start's the estimated time is. A run never has both, and no estimate is a
    speedup.
    """

    start_us: float | None
    """Estimated time of the start; None where speeds are measured."""
    words: str
    """What the number is, with its provenance."""

    def speed(self, entry: CandidateReport) -> float | None:
        """Return the candidate's number; None without a time."""
        if self.start_us is None:
            return entry.speedup
        return self.start_us / entry.latency_us if entry.latency_us else None

    def interval(self, entry: CandidateReport) -> tuple[float, float] | None:
        """Return the 95 % interval; None for an estimate, which has none."""
        return entry.speedup_interval if self.start_us is None else None

    def told(self, entry: CandidateReport) -> str:
        """Return the number with what is known of its uncertainty; empty without a time."""
        return ratio_words(self.speed(entry), self.interval(entry))


def yardstick_of(report: RunReport) -> Yardstick:
    """Return how speed is told in `report`."""
    if report.gpu is not None:
        baseline = report.baseline or "the baseline"
        return Yardstick(None, f"speedup over {baseline}, {Provenance.MEASURED}")
    return Yardstick(
        report.start_latency_us, f"times the speed of the start, {Provenance.ESTIMATED}"
    )


def title_of(entry: CandidateReport, yardstick: Yardstick) -> str:
    """Return a candidate in one line, for tooltips."""
    tune = ", ".join(f"{name}={value}" for name, value in entry.tune.items())
    time = "" if entry.latency_us is None else f"{entry.latency_us:.3f} us {entry.provenance}"
    parts = (f"#{entry.seq}", entry.family, entry.status or "not evaluated", time)
    return " ".join(part for part in (*parts, yardstick.told(entry), tune) if part)


def verdict(report: RunReport) -> str:
    """Return the outcome in a sentence."""
    if report.winner is None:
        return f"{report.status}: no candidate has passed the full check{_so_far(report)}."
    first = report.population[report.winner].same_program_as
    same = "" if first is None else f" (the same program as {first})"
    winner = f"Candidate {report.winner}{same}"
    if report.best_latency_us is None:
        return f"{winner} passed the full check; its time is unavailable."
    text = f"{winner} passed the full check, {report.provenance} {report.best_latency_us:.3f} us"
    if report.best_speedup is not None:
        interval = _interval(report.best_speedup_interval)
        text += f", {report.best_speedup:.3f} times the speed of {report.baseline}{interval}"
    if report.start_latency_us is None or report.ratio is None:
        return f"{text}; the start has no time to compare with."
    return (
        f"{text}; the start {report.start_latency_us:.3f} us:"
        f" {report.ratio:.2f} times by {report.provenance} {_kind_of_ratio(report)}."
    )


def facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield what was run, where, and how it ended."""
    yield "Run", f"{report.run}, {report.status}"
    begun = datetime.fromtimestamp(report.created_us / 1e6, UTC)
    yield "Begun", f"{begun:%Y-%m-%d %H:%M} UTC, {report.spent_s:.1f} s of wall time"
    gpu = report.gpu
    described = "" if gpu is None else f" ({gpu.name}, {gpu.uuid}, driver {gpu.driver_version})"
    yield "Device", f"{report.device}{described}, compiled for {report.arch}"
    yield from copy_facts(report)
    for time in report.winner_times:
        over = f"{ratio_words(time.speedup, time.speedup_interval)} {time.baseline or ''}"
        yield f"Winner at {time.workload}", f"{time.latency_us:.3f} us measured, {over}"
    yield (
        "Search",
        (
            f"{report.strategy}, beam width {report.beam_width}, at most"
            f" {counted(report.rounds, 'round')},"
            f" budget {report.budget}, seed {report.seed}"
        ),
    )
    if report.stop_detail is not None:
        yield "Stopped", f"{report.stop_reason}: {report.stop_detail}"
    for one in report.judgements:
        outcome = one.outcome.replace("_", " ")
        why = f": {one.why}" if one.why else ""
        yield one.what.capitalize(), f"#{one.candidate} {outcome}{why}"
    yield "Evaluated", _evaluated(report)
    if report.pace.gpu_busy_share is not None:
        yield (
            "GPU",
            (
                f"held for {report.pace.gpu_s or 0.0:.1f} s, {report.pace.gpu_busy_share:.0%} of"
                f" the {report.pace.pending_s:.1f} s in which a candidate was queued or under"
                f" evaluation, and {report.pace.tool_gpu_s:.1f} s by tools of agents (measured)"
            ),
        )
    yield "Models", _models(report)


def copy_facts(report: RunReport) -> Iterator[tuple[str, str]]:
    """Yield how far the best is from a plain copy, and whose times are to be doubted."""
    copy_us, best_us = report.plain_copy_us, report.best_latency_us
    if copy_us is None:
        return
    ratio = "" if best_us is None else f"; the best takes {best_us / copy_us:.2f} times as long"
    yield "Plain copy", f"{copy_us:.3f} us measured, of as many bytes on this GPU{ratio}"
    odd = [
        f"#{entry.seq} ({entry.below_copy:.2f} of it)"
        for entry in report.population
        if entry.below_copy is not None
    ]
    if odd:
        yield (
            "Doubts",
            f"clearly faster than the plain copy: {', '.join(odd)}; is work left out, does data"
            " stay in a cache",
        )


def round_table(report: RunReport) -> Table:
    """Return a row for each round."""
    yardstick = yardstick_of(report)
    by_seq = {entry.seq: entry for entry in report.population}
    rows: list[tuple[str, ...]] = []
    for one in report.round_figures:
        best = None if one.best is None else by_seq[one.best]
        rows.append(
            (
                str(one.round),
                one.kind,
                f"{one.passed} of {one.candidates}",
                "" if best is None else f"#{best.seq} {yardstick.told(best)}",
                " ".join(f"#{seq}" for seq in one.beam),
                _usd(one.cost_usd),
            )
        )
    heads = ("Round#", "Kind", "Passed", "Best so far", "Beam", "USD#")
    return Table(heads, tuple(rows), f"Best so far: {yardstick.words}.")


def family_table(report: RunReport) -> Table:
    """Return a row for each strategy family, the fastest first."""
    yardstick = yardstick_of(report)
    rows: list[tuple[float, tuple[str, ...]]] = []
    for family in dict.fromkeys(entry.family for entry in report.population):
        own = [entry for entry in report.population if entry.family == family]
        timed = [entry for entry in own if yardstick.speed(entry) is not None]
        best = max(timed, key=lambda entry: yardstick.speed(entry) or 0.0, default=None)
        passed = sum(entry.status == "passed" for entry in own)
        told = "" if best is None else f"#{best.seq} {yardstick.told(best)}"
        speed = 0.0 if best is None else yardstick.speed(best) or 0.0
        rows.append((-speed, (family, f"{passed} of {len(own)}", told)))
    ordered = tuple(row for _, row in sorted(rows))
    return Table(("Family", "Passed", "Best"), ordered, f"Best: {yardstick.words}; fastest first.")


def lost_table(report: RunReport) -> Table:
    """Return a row for each hypothesis of which no candidate passed."""
    rows = tuple((one.branch, one.slot, one.family, one.name, one.why) for one in report.lost)
    return Table(("Branch", "Slot", "Family", "Hypothesis", "Why it led to nothing"), rows)


def lesson_lines(report: RunReport) -> Iterator[str]:
    """Yield what each round taught: its digest, then a line for each candidate and direction."""
    for one in report.lessons:
        said = one.reflection
        yield f"Round {one.round}: {said.digest}"
        yield from (f"{lesson.candidate}: {lesson.text}" for lesson in said.lessons)
        yield from (f"next: {text}" for text in said.directions)
        yield from (f"not again: {text}" for text in said.avoid)


def cost_table(report: RunReport) -> Table:
    """Return a row for each role and model, the dearest first."""
    rows = tuple(
        (
            one.role,
            one.model,
            f"{one.calls}" + (f" ({one.failed} failed)" if one.failed else ""),
            f"{one.input_tokens:,}",
            f"{one.cache_write_tokens:,}",
            f"{one.cache_read_tokens:,}",
            f"{one.output_tokens:,}",
            f"{one.latency_s:.1f}",
            _usd(one.cost_usd),
            one.cost_kind,
        )
        for one in report.spend.roles
    )
    heads = (
        *("Role", "Model", "Calls", "Input#", "Cache written#", "Cache read#", "Output#"),
        *("Seconds#", "USD#", "Cost is"),
    )
    return Table(heads, rows)


def _usd(amount: float | None) -> str:
    return "-" if amount is None else f"{amount:.4f}"


def worth(report: RunReport) -> str:
    """Return what the calls cost in all and what they bought; empty where none was made."""
    spend = report.spend
    if not spend.calls:
        return ""
    calls = "1 call" if spend.calls == 1 else f"{spend.calls} calls"
    paid = "" if report.is_paid else ", not paid: a script or a recording played the model"
    parts = [f"{calls}, {spend.tokens:,} tokens, {usd_words(spend)}{paid}"]
    if spend.cached_share is not None:
        parts.append(f"{spend.cached_share:.0%} of the prompts read from the provider's cache")
    if spend.unsettled:
        parts.append(f"calls of unknown end, counted at their worst case: {spend.unsettled}")
    if spend.log_speedup_per_mtok is not None:
        per_mtok = f"{spend.log_speedup_per_mtok:.3f} ({report.provenance})"
        parts.append(f"ln(speedup) per million tokens {per_mtok}")
    return "; ".join(parts) + "."


def _so_far(report: RunReport) -> str:
    """Return which candidate leads a search that has not ended; empty without one."""
    if report.status == "failed" or not report.ranking or report.best_latency_us is None:
        return ""
    words = (
        f"; best so far #{report.ranking[0]}, {report.provenance} {report.best_latency_us:.3f} us"
    )
    if report.best_speedup is not None:
        interval = _interval(report.best_speedup_interval)
        return f"{words}, {report.best_speedup:.3f} times the speed of {report.baseline}{interval}"
    if report.ratio is None:
        return words
    return f"{words}, {report.ratio:.2f} times the start by {report.provenance} time"


def _evaluated(report: RunReport) -> str:
    rate = report.pace.evaluations_per_minute
    words = f"{report.evaluated} of {report.candidates} candidates"
    return words if rate is None else f"{words}, {rate:.1f} evaluations per minute (measured)"


def _models(report: RunReport) -> str:
    if not report.spend.calls:
        return "none was asked"
    return ", ".join(f"{one.role} {one.model}" for one in report.spend.roles)


def _kind_of_ratio(report: RunReport) -> str:
    """Return what the ratio is one of: measured times of two moments are never divided."""
    return "time" if report.best_speedup is None else "speed"


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
