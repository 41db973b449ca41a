"""A run as one self-contained HTML page: no library, no network, no script that runs.

Sources and messages in it come from candidates, so everything is escaped, and the page's own
policy forbids all that it does not need. The same data stand in it as JSON for programs.
"""

import base64
import hashlib
from collections.abc import Iterable
from html import escape

from .candidate_report import CandidateReport
from .run_chart import latency_chart
from .run_report import RunReport

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#8b949e;
--mark:#0969da;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;
--mark:#58a6ff;--bad:#ff7b72}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:60rem;
margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{padding:.2rem .6rem;text-align:left;
border-bottom:1px solid var(--faint)}td.number{text-align:right;font-variant-numeric:tabular-nums}
pre{overflow:auto;border:1px solid var(--faint);padding:1rem}svg{width:100%}
svg text{font-size:12px;fill:var(--ink)}.axis{stroke:var(--ink)}
.grid{stroke:var(--faint);opacity:.4}
.best{fill:none;stroke:var(--mark);stroke-dasharray:5 3}.passed{fill:var(--mark)}
.winner{fill:var(--paper);stroke:var(--mark);stroke-width:4}.failed{stroke:var(--bad);fill:none}
"""


def render_page(report: RunReport, winner_source: str | None) -> str:
    """Return the page; `winner_source` is shown below the tables if there is a winner."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    body = "".join(_body(report, winner_source))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(report.run)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def _body(report: RunReport, winner_source: str | None) -> Iterable[str]:
    yield f"<h1>{escape(report.kernel)}</h1><p>{escape(_verdict(report))}</p>"
    yield "<table>"
    for name, value in _settings(report):
        yield f"<tr><th>{name}</th><td>{escape(value)}</td></tr>"
    yield "</table><h2>Search</h2>"
    yield latency_chart(report.population, report.winner)
    yield "<h2>Candidates</h2>"
    yield from _table(report)
    if winner_source is not None:
        yield f"<h2>Winner</h2><pre>{escape(winner_source)}</pre>"
    # Only "<" could end the element early; nothing else in JSON means anything to HTML here.
    data = report.model_dump_json(by_alias=True).replace("<", "\\u003c")
    yield f'<script type="application/json" id="run">{data}</script>'


def _verdict(report: RunReport) -> str:
    if report.winner is None:
        return f"{report.status}: no candidate has passed the full check."
    if report.best_latency_us is None:
        return f"Candidate {report.winner} passed the full check; its time is unavailable."
    text = (
        f"Candidate {report.winner} passed the full check, {report.provenance}"
        f" {report.best_latency_us:.3f} us"
    )
    if report.best_speedup is not None:
        interval = _interval(report.best_speedup_interval)
        text += f", {report.best_speedup:.3f} times the speed of {report.baseline}{interval}"
    if report.start_latency_us is None or report.ratio is None:
        return f"{text}; the start has no time to compare with."
    return (
        f"{text}; the start {report.start_latency_us:.3f} us:"
        f" {report.ratio:.2f} times by {report.provenance} {_yardstick(report)}."
    )


def _yardstick(report: RunReport) -> str:
    """Return what the ratio is one of: measured times of two moments are never divided."""
    return "time" if report.best_speedup is None else "speed"


def _settings(report: RunReport) -> Iterable[tuple[str, str]]:
    yield "Run", f"{report.run}, {report.status}"
    gpu = report.gpu
    facts = "" if gpu is None else f" ({gpu.name}, {gpu.uuid}, driver {gpu.driver_version})"
    yield "Device", f"{report.device}{facts}, compiled for {report.arch}"
    for time in report.winner_times:
        yield (
            f"Winner at {escape(time.workload)}",
            (
                f"{time.latency_us:.3f} us measured, {_speedup(time.speedup)}"
                f" {time.baseline or ''}{_interval(time.speedup_interval)}"
            ),
        )
    yield (
        "Search",
        (
            f"beam {report.beam_width}, at most {report.rounds} rounds, budget {report.budget},"
            f" seed {report.seed}"
        ),
    )
    yield "Evaluated", f"{report.evaluated} of {report.candidates} in {report.spent_s:.1f} s"
    if report.stop_detail is not None:
        yield "Stopped", f"{report.stop_reason}: {report.stop_detail}"


def _table(report: RunReport) -> Iterable[str]:
    place = {seq: index for index, seq in enumerate(report.ranking)}
    ordered = sorted(report.population, key=lambda e: (place.get(e.seq, len(place)), e.seq))
    heads = (
        *("#", "Round", "Tune", "Status", "Time in us", "Speedup", "Registers"),
        *("Full check", "Remark"),
    )
    yield f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>"
    for entry in ordered:
        yield f"<tr>{''.join(_cells(entry))}</tr>"
    yield "</table>"


def _cells(entry: CandidateReport) -> Iterable[str]:
    tune = ", ".join(f"{name}={value}" for name, value in entry.tune.items())
    time = "" if entry.latency_us is None else f"{entry.latency_us:.3f} {entry.provenance}"
    same = "" if entry.same_program_as is None else f"same program as {entry.same_program_as}"
    registers = entry.registers_per_thread
    yield f'<td class="number">{entry.seq}</td><td class="number">{entry.round}</td>'
    yield f"<td>{escape(tune)}</td><td>{escape(entry.status or 'not evaluated')}</td>"
    yield f'<td class="number">{escape(time)}</td>'
    yield f'<td class="number">{_speedup(entry.speedup)}{_interval(entry.speedup_interval)}</td>'
    yield f'<td class="number">{"" if registers is None else registers}</td>'
    yield f"<td>{escape(entry.full_status or '')}</td><td>{escape(same or entry.summary)}</td>"


def _speedup(speedup: float | None) -> str:
    return "" if speedup is None else f"{speedup:.3f}x"


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({interval[0]:.3f} to {interval[1]:.3f})"
