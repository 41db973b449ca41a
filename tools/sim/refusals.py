"""Why the simulator cannot run a candidate, in the candidate's own lines and words.

nvcc accepts the source before the simulator's verdict counts: what g++ refuses is CUDA that the
simulator does not offer. g++ proposes the simulator's own names and complains about its headers;
neither helps an author, so both are left out.
"""

import re

from kopt.kernels.record import Diagnostic, source_excerpt

from .ptx_advice import header_refusal, ptx_refusal
from .unit import UNIT_NAME

_MESSAGE = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?:fatal )?error: (?P<text>.*)$"
)
_USED_AT = re.compile(
    rf"(?:required from here|In file included from|from) {re.escape(UNIT_NAME)}:(\d+)"
    rf"|^{re.escape(UNIT_NAME)}:(\d+):\d+:   required from",
    re.MULTILINE,
)
_PTX = re.compile(r"\basm\b|constraint")
_UNKNOWN = re.compile(
    r"\u2018(?P<name>[^\u2019]+)\u2019 (?:was not declared|is not a member|has not been declared)"
)
_PROPOSAL = re.compile(r"; did you mean \u2018[^\u2019]*\u2019\?")
_MAX_DIAGNOSTICS = 5
_HINT = (
    "docs/sim.md lists the CUDA that the simulator runs; write it in plain CUDA C++, or check on a"
    " GPU: --device cuda:0"
)


def unsupported(reason: str, line: int | None = None) -> Diagnostic:
    """Return that the kernel cannot be run for `reason`."""
    return Diagnostic(
        line=line,
        message=f"the simulator cannot run this kernel: {reason}",
        hint="use the wrappers of <kopt/...> or plain CUDA C++ (docs/sim.md lists what works)",
    )


def explain_assembly(source: str, line: int) -> Diagnostic:
    """Return why inline assembly that was met at `line` is refused, and what to write instead."""
    return (
        ptx_refusal(source, line, exact=True)
        or header_refusal(source)
        or ptx_refusal(source, line)
        or unsupported("it has inline assembly", line)
    )


def parse_messages(text: str, source: str) -> tuple[Diagnostic, ...]:
    """Return g++'s errors, the first few, each with the candidate's line where it can be told."""
    found: dict[object, Diagnostic] = {}
    messages = [match for match in map(_MESSAGE.match, text.splitlines()) if match is not None]
    about_header = header_refusal(source)
    for message in messages:
        own = message["file"] == UNIT_NAME
        line = int(message["line"])
        if own and _PTX.search(message["text"]):
            found.setdefault(line, explain_assembly(source, line))
        elif about_header is not None:
            found.setdefault("header", about_header)
        elif own:
            found.setdefault(line, _own(message, source))
        else:
            told = _elsewhere(message, text)
            found.setdefault(told.message, told)
    if found:
        return tuple(found.values())[:_MAX_DIAGNOSTICS]
    first = text.strip().splitlines()[:1]
    return (Diagnostic(message=f"g++ cannot compile it for the simulator: {''.join(first)}"),)


def _own(message: re.Match[str], source: str) -> Diagnostic:
    line, column = int(message["line"]), int(message["column"])
    return Diagnostic(
        message=f"not supported on the simulator: {_in_words(message['text'])}",
        line=line,
        column=column,
        excerpt=source_excerpt(source, line, column),
        hint=_HINT,
    )


def _elsewhere(message: re.Match[str], text: str) -> Diagnostic:
    """Return a message about a header, at the candidate's line that led there."""
    used = [first or second for first, second in _USED_AT.findall(text)]
    return Diagnostic(
        message=f"not supported on the simulator: {_in_words(message['text'])}",
        line=int(used[-1]) if used else None,
        file=None if used else message["file"].rsplit("/", 1)[-1],
        hint=_HINT,
    )


def _in_words(text: str) -> str:
    unknown = _UNKNOWN.search(text)
    if unknown is not None:
        return f"it has no `{unknown['name']}`"
    return _PROPOSAL.sub("", text.removeprefix("#error ").removeprefix("static assertion failed: "))
