"""g++'s messages as diagnostics on the candidate's own lines."""

import re

from kopt.kernels.excerpts import source_excerpt
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
    found: list[Diagnostic] = []
    for message in map(_MESSAGE.match, text.splitlines()):
        if message is None or len(found) == _MAX_DIAGNOSTICS:
            continue
        own = message["file"] == UNIT_NAME
        line, column = int(message["line"]), int(message["column"])
        found.append(
            Diagnostic(
                message=f"not supported on the simulator: {_in_words(message['text'])}",
                line=line if own else None,
                column=column if own else None,
                file=None if own else message["file"].rsplit("/", 1)[-1],
                excerpt=source_excerpt(source, line, column) if own else None,
                hint="docs/sim.md lists the CUDA that the simulator runs",
            )
        )
    if found:
        return tuple(found)
    first = text.strip().splitlines()[:1]
    return (Diagnostic(message=f"g++ cannot compile it for the simulator: {''.join(first)}"),)


def _in_words(text: str) -> str:
    """g++ reads PTX as x86 assembly, and complains about operands."""
    return "raw PTX (inline assembly)" if "asm" in text else text
