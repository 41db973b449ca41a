"""A check result as text: the status, where the first mismatch is, and what was run."""

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kopt.kernels.check_result import CheckResult, Mismatch
from kopt.kernels.status import Status
from kopt.tools.facts.wording import short_id, tune_words

from .diagnostics import advice_text, diagnostics_text, status_text, uncovered_lines
from .sanitizer_view import sanitizer_lines
from .tables import View


def check_view(name: str, result: CheckResult) -> View:
    """Yield the result of checking the file `name`."""
    yield Text.assemble(
        status_text(result.status),
        f"  {result.kernel}  {name} ({short_id(result.candidate)})",
    )
    level = f"level {result.level} on {result.device}, {result.elapsed_s:.1f} s"
    sandbox = f", sandbox {result.sandbox}" if result.sandbox else ""
    tune = "".join(f", {key}={value}" for key, value in result.values_at().items())
    yield Text(f"{level}{sandbox}{tune}", style="dim")
    if result.mismatch is not None:
        yield _mismatch(result.mismatch)
    if result.diagnostics:
        yield diagnostics_text(name, result.diagnostics)
    yield from uncovered_lines(result.compiled)
    if result.workloads:
        yield _workloads(result)
    if result.accuracy:
        yield _accuracy(result)
    if result.cpu_bodies:
        yield Text(f"Run by their CPU bodies: {', '.join(result.cpu_bodies)}")
    if result.sanitizer is not None:
        yield from sanitizer_lines(name, result.sanitizer)
    if result.status is not Status.PASSED:
        yield advice_text(result.status)
    elif result.level == "quick":
        yield Text(
            "Quick: the named workload, one seed, one schedule. '--level full' checks the rest."
        )


def _mismatch(found: Mismatch) -> Text:
    seed = "a hidden seed" if found.seed is None else f"seed {found.seed}"
    share = _share(found.wrong_elements, found.total_elements)
    index = ", ".join(str(part) for part in found.index)
    return Text(
        f"First wrong element: {found.tensor}[{index}] (row {found.row}, column {found.column}):"
        f" expected {found.expected}, got {found.got}\n"
        f"Pattern: {found.pattern}; {found.wrong_elements} of {found.total_elements} elements"
        f" ({share}) fail the {found.gate} gate\n"
        f"Workload {found.workload}, {seed}, inputs '{found.regime}'"
    )


def _share(part: int, whole: int) -> str:
    """Return a percentage that says 100% of all elements only, and 0% of none only."""
    if part == whole:
        return "100%"
    return f"{min(max(part / whole, 0.0001), 0.9999):.2%}"


def _workloads(result: CheckResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for column in ("seeds", "hidden", "poisons", "schedules", "runs", "time of runs"):
        table.add_column(column, justify="right")
    values = {
        entry.workload: tune_words(result.values_at(entry.workload)) for entry in result.workloads
    }
    differ = len(set(values.values())) > 1
    if differ:
        table.add_column("tune values", no_wrap=True)
    for entry in result.workloads:
        counts = (
            entry.visible_seeds,
            entry.hidden_seeds,
            entry.poisons,
            entry.schedules,
            entry.executions,
        )
        cells = (str(count) for count in counts)
        own = (values[entry.workload],) if differ else ()
        seconds = f"{entry.elapsed_s:.1f} s"
        table.add_row(entry.workload, status_text(entry.status), *cells, seconds, *own)
    return table


def _accuracy(result: CheckResult) -> RenderableType:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("output", no_wrap=True)
    for column in ("differs from rounded", "max abs", "max rel", "1e-2 / 1e-3", "L2 ratio"):
        table.add_column(column, justify="right")
    for entry in result.accuracy:
        table.add_row(
            entry.tensor,
            f"{entry.mismatch_fraction:.4%}",
            f"{entry.max_abs:.3g}",
            f"{entry.max_rel:.3g}",
            "within" if entry.within_fixed_limits else "beyond",
            "-" if entry.l2_ratio is None else f"{entry.l2_ratio:.2f}",
        )
    note = Text(
        "Information only: the gates judge element by element (docs/correctness.md).", style="dim"
    )
    return Group(table, note)
