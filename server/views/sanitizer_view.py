"""What compute-sanitizer found, as text: one line a tool, then the findings."""

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from kopt.kernels.sanitizer_result import SanitizerResult, SanitizerRun
from kopt.kernels.status import Status

from .diagnostics import advice_text, diagnostics_text, short_id, status_text

_STYLES = {
    "passed": "bold green",
    "findings": "bold red",
    "unavailable": "yellow",
    "timeout": "yellow",
}


def sanitizer_view(name: str, result: SanitizerResult) -> RenderableType:
    """Return the result of examining the file `name`."""
    return Group(*_parts(name, result))


def _parts(name: str, result: SanitizerResult) -> Iterator[RenderableType]:
    gpu = f" ({result.gpu.name})" if result.gpu else ""
    yield Text.assemble(
        status_text(result.status),
        f"  {result.sanitizer or 'compute-sanitizer'} on {result.device}{gpu}"
        f"  {result.kernel}  {name} ({short_id(result.candidate)})",
    )
    if result.diagnostics:
        yield diagnostics_text(name, result.diagnostics)
    for run in result.runs:
        yield _run_line(run)
        if run.findings:
            yield diagnostics_text(name, run.findings)
    if result.status is not Status.PASSED:
        yield advice_text(result.status)
    elif not result.is_complete:
        yield Text("Not every tool judged: this is no clean bill.", style="yellow")


def _run_line(run: SanitizerRun) -> Text:
    reason = f": {run.reason}" if run.reason else ""
    log = f"  {run.log_path}" if run.log_path else ""
    sandbox = f", sandbox {run.sandbox}" if run.sandbox else ""
    return Text.assemble(
        f"{run.tool}: ",
        (run.outcome, _STYLES[run.outcome]),
        f"{reason} ({run.elapsed_s:.1f} s{sandbox})",
        (log, "dim"),
    )
