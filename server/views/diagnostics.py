"""Statuses and diagnostics as text: how a candidate ended, where, and what to do about it."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileChoices, ProfileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import ADVICE, Status
from kopt.tools.facts.compile_facts import UNSERVED, left_out_words
from kopt.tools.facts.findings import Judged
from kopt.tools.facts.wording import clipped, short_id

SHOWN = 12  # more would push the first, which matters most, off the screen
SHOWN_VARIANTS = 3
SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def status_text(status: Status) -> Text:
    """Return the status as it is written everywhere, green if passed and red else."""
    return Text(status.value, style="bold green" if status is Status.PASSED else "bold red")


def candidate_words(name: str, result: Judged | ProfileChoices) -> str:
    """Return kernel id, file and content hash of a candidate."""
    return f"{result.kernel}  {name} ({short_id(result.candidate)})"


def profiled_text(name: str, profile: ProfileResult | ProfileChoices) -> Text:
    """Return the heading of a profile: status, candidate, architecture and data sheet."""
    return Text.assemble(
        status_text(profile.status),
        f"  {candidate_words(name, profile)}  {profile.arch}, data sheet of {profile.gpu}",
    )


def diagnostics_text(name: str, diagnostics: Sequence[Diagnostic]) -> Text:
    """Return the diagnostics of the file `name`, compiler style, the first `SHOWN` of them."""
    text = Text()
    for diagnostic in diagnostics[:SHOWN]:
        place = ":".join(
            str(part)
            for part in (diagnostic.file or name, diagnostic.line, diagnostic.column)
            if part is not None
        )
        text.append(f"{place}: ")
        text.append(f"{diagnostic.severity}: ", style=SEVERITY_STYLES[diagnostic.severity])
        text.append(f"{diagnostic.message}\n")
        if diagnostic.excerpt:
            text.append(f"{diagnostic.excerpt.rstrip()}\n")
        if diagnostic.hint:
            text.append(f"  hint: {diagnostic.hint}\n", style="cyan")
    left_out = len(diagnostics) - SHOWN
    if left_out > 0:
        text.append(f"... and {left_out} more; --json has all\n")
    text.rstrip()
    return text


def advice_text(status: Status) -> Text:
    """Return what to do about `status`, one line."""
    return Text(f"What to do: {ADVICE[status]}")


def uncovered_lines(compiled: CompileResult) -> Iterator[Text]:
    """Yield what of the header nothing was built for, of a build that has passed."""
    if compiled.status is Status.PASSED and (words := left_out_words(compiled)):
        yield Text(f"Left out: {words} (kopt compile says why)", style="yellow")
    yield from unserved_lines(compiled.unserved)


def unserved_lines(conditions: Sequence[str]) -> Iterator[Text]:
    """Yield the variants that no workload takes, the first few of them."""
    for condition in conditions[:SHOWN_VARIANTS]:
        yield Text(f"Variant 'when: {clipped(condition, 80)}': {UNSERVED}", style="yellow")
    if len(conditions) > SHOWN_VARIANTS:
        yield Text(f"... and {len(conditions) - SHOWN_VARIANTS} more such variants", style="yellow")
