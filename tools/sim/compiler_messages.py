"""g++'s messages as diagnostics on the candidate's own lines."""

import re

from kopt.kernels.record import Diagnostic

from .unit import UNIT_NAME

_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$"
)
_MAX_DIAGNOSTICS = 5


def parse_messages(text: str, source: str) -> tuple[Diagnostic, ...]:
    """Return g++'s errors, the first few, each with the candidate's line where it names one.

    nvcc accepts the source before the simulator's verdict counts: what g++ refuses is CUDA that
    the simulator does not offer.
    """
    lines = source.splitlines()
    found: list[Diagnostic] = []
    for message in map(_MESSAGE.match, text.splitlines()):
        if message is None or len(found) == _MAX_DIAGNOSTICS:
            continue
        own = message["file"] == UNIT_NAME
        number = int(message["line"])
        found.append(
            Diagnostic(
                message=f"not supported on the simulator: {message['text']}",
                line=number if own else None,
                column=int(message["column"]) if own else None,
                file=None if own else message["file"].rsplit("/", 1)[-1],
                excerpt=_excerpt(lines, number, int(message["column"])) if own else None,
                hint="docs/sim.md lists the CUDA that the simulator runs",
            )
        )
    if found:
        return tuple(found)
    first = text.strip().splitlines()[:1]
    return (Diagnostic(message=f"g++ cannot compile it for the simulator: {''.join(first)}"),)


def _excerpt(lines: list[str], number: int, column: int) -> str | None:
    if not 1 <= number <= len(lines):
        return None
    return f"{lines[number - 1]}\n{' ' * (column - 1)}^"
