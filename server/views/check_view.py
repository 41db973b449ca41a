"""A check as text: the status, the first mismatch, what was run, what a sanitizer found."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kopt.kernels.check_result import CheckResult, Mismatch, SanitizerResult, SanitizerRun
from kopt.kernels.status import Status
from kopt.tools.facts.check_facts import (
    element_words,
    fixed_scalar_words,
    hidden_shape_words,
    inputs_words,
    judged_rows_words,
    passed_over_words,
    regime_words,
    sanitizer_words,
    unexecuted_words,
)
from kopt.tools.facts.wording import tune_words

from .diagnostics import (
    advice_text,
    candidate_words,
    diagnostics_text,
    status_text,
    uncovered_lines,
)
from .tables import NOTHING, Cell, View, grid

_COUNTS = ("seeds#", "hidden#", "fill patterns#", "schedules#", "runs#", "time of runs#")
_ACCURACY = (
    *("output", "not correctly rounded#", "max abs error#", "max rel error#"),
    *("abs < 1e-2, rel < 1e-3", "error norm / rounding's#"),
)
_SANITIZER_STYLES = {"passed": "green", "unavailable": "yellow", "timeout": "yellow"}


def check_view(name: str, result: CheckResult) -> View:
    """Yield the result of checking the file `name`."""
    yield Text.assemble(status_text(result.status), f"  {candidate_words(name, result)}")
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
    yield from _reach(result)
    if result.accuracy:
        yield from _accuracy(result)
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


def sanitizer_lines(name: str, result: SanitizerResult) -> Iterator[Text]:
    """Yield a line for each tool, with the findings in the file `name` below it."""
    yield Text(f"{result.sanitizer or 'compute-sanitizer'} on {result.device}:")
    for run in result.runs:
        yield _sanitizer_line(run)
        if run.findings:
            yield diagnostics_text(name, run.findings)


def _sanitizer_line(run: SanitizerRun) -> Text:
    if run.outcome == "findings":
        line = Text.assemble(f"  {run.tool} ", status_text(run.status))
    else:
        line = Text(f"  {sanitizer_words(run)}", _SANITIZER_STYLES[run.outcome])
    log = "" if run.log_path is None else f", log {run.log_path}"
    return line.append(f" ({run.elapsed_s:.1f} s{log})")


def _mismatch(found: Mismatch) -> Text:
    if found.wrong_elements is None:
        return Text(
            f"{element_words(found)}: no index or value is told of these\n"
            f"Pattern: {found.pattern}\n"
            f"Workload {found.workload}, inputs {inputs_words(found)}"
        )
    wrong = f"{found.wrong_elements} of {found.total_elements} elements"
    share = _share(found.wrong_elements, found.total_elements)
    return Text(
        f"First wrong element: {element_words(found)} (row {found.row}, column {found.column})\n"
        f"Pattern: {found.pattern}; {wrong} ({share}) fail the {found.gate} gate\n"
        f"Workload {found.workload}, inputs {inputs_words(found)}"
    )


def _share(part: int, whole: int) -> str:
    """Return a percentage that says 100% of all elements only, and 0% of none only."""
    if part == whole:
        return "100%"
    return f"{min(max(part / whole, 0.0001), 0.9999):.2%}"


def _workloads(result: CheckResult) -> Table:
    values = {
        entry.workload: tune_words(result.values_at(entry.workload)) for entry in result.workloads
    }
    differ = len(set(values.values())) > 1
    heads = ("workload", "status", *_COUNTS, *(("tune values",) if differ else ()))
    table = grid(*heads, whole=("workload", "status", "tune values"))
    for entry in result.workloads:
        counts = (
            entry.visible_seeds,
            entry.hidden_seeds,
            entry.poisons,
            entry.schedules,
            entry.executions,
        )
        cells: list[Cell] = [entry.workload, status_text(entry.status), *map(str, counts)]
        own = (values[entry.workload],) if differ else ()
        table.add_row(*cells, f"{entry.elapsed_s:.1f} s", *own)
    return table


def _reach(result: CheckResult) -> Iterator[Text]:
    """Yield what the result rests on beside the problem's own shapes, and what it does not."""
    shapes, fixed = hidden_shape_words(result), fixed_scalar_words(result)
    waiting, regimes = passed_over_words(result), regime_words(result)
    not_run, judged = unexecuted_words(result), judged_rows_words(result)
    if waiting is not None:
        yield Text(f"Passed over: {waiting}", style="yellow")
    if judged is not None:
        yield Text(f"Judged: {judged}")
    if shapes is not None:
        yield Text(f"Other shapes: {shapes}")
    if regimes is not None:
        yield Text(f"Regimes left out: {regimes}", style="yellow")
    if fixed is not None:
        yield Text(f"Fixed scalars: {fixed}", style="yellow")
    races = result.race_check
    if races is not None:
        is_missing = races.outcome == "unavailable"
        yield Text(f"Races: {races.words}", style="yellow" if is_missing else "")
    if not_run is not None:
        yield Text(f"Not run: {not_run}", style="yellow")


def _accuracy(result: CheckResult) -> Iterator[RenderableType]:
    rows = (
        (
            entry.tensor,
            f"{entry.mismatch_fraction:.4%}",
            f"{entry.max_abs:.3g}",
            f"{entry.max_rel:.3g}",
            "yes" if entry.within_fixed_limits else "no",
            NOTHING if entry.l2_ratio is None else f"{entry.l2_ratio:.2f}",
        )
        for entry in result.accuracy
    )
    yield grid(*_ACCURACY, rows=rows, whole=("output",))
    yield Text(
        "Information only: the gates judge element by element (docs/correctness.md).", style="dim"
    )
