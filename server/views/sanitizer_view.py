"""What compute-sanitizer found, tool by tool; one that could not judge says why."""

from collections.abc import Iterator

from rich.text import Text

from kopt.kernels.sanitizer_result import SanitizerResult, SanitizerRun

from .diagnostics import diagnostics_text, status_text

STYLES = {"passed": "green", "findings": "bold red", "unavailable": "yellow", "timeout": "yellow"}


def sanitizer_lines(name: str, result: SanitizerResult) -> Iterator[Text]:
    """Yield a line for each tool, with the findings in the file `name` below it."""
    yield Text(f"{result.sanitizer or 'compute-sanitizer'} on {result.device}:")
    for run in result.runs:
        yield _run_line(run)
        if run.findings:
            yield diagnostics_text(name, run.findings)


def _run_line(run: SanitizerRun) -> Text:
    line = Text.assemble(f"  {run.tool} ", (run.outcome, STYLES[run.outcome]))
    if run.outcome == "findings":
        line = Text.assemble(f"  {run.tool} ", status_text(run.status))
    reason = "" if run.reason is None else f": {run.reason}"
    log = "" if run.log_path is None else f", log {run.log_path}"
    line.append(f"{reason} ({run.elapsed_s:.1f} s{log})")
    return line
