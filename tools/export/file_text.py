"""The text of an export's files: templates that lie beside the code, and comments."""

import re
import textwrap
from collections.abc import Mapping
from importlib.resources import files

from kopt import __version__

from .subject import ExportSubject

_WIDTH = 100


def comment(text: str, indent: int = 0) -> str:
    """Return `text` as C++ comment lines, wrapped."""
    lead = " " * indent + "// "
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH - len(lead), break_on_hyphens=False)
    return "".join(f"{lead}{line}\n" for line in lines)


def provenance_line(subject: ExportSubject) -> str:
    """Return one sentence: what made this file, from what."""
    digest = subject.candidate.id[:16]
    return (
        f"Written by kopt {__version__} from {subject.candidate.name} (SHA-256 {digest}...);"
        " README.md says what was proven."
    )


def measured_speedup(subject: ExportSubject) -> str:
    """Return in one or two sentences what was measured of the kernel, or that nothing was."""
    receipt = subject.receipt
    if receipt is None:
        return "Not promoted: there is no proof of its results or its speed."
    shown = ", ".join(
        f"{one.speedup:.3f}x at {one.workload} ({one.range[0]:.3f} to {one.range[1]:.3f})"
        f" against {one.baseline.label}"
        for one in receipt.workloads
    )
    return f"Measured by kopt on {receipt.device.name}: {shown}; receipt {receipt.digest}."


_PLACE = re.compile(r"@([A-Z][A-Z_]*)@")


def filled(template: str, words: Mapping[str, str]) -> str:
    """Return the text of a template with its places filled from `words`."""
    text = files("kopt.tools.export").joinpath("templates", f"{template}.txt").read_text("utf-8")
    return _PLACE.sub(lambda match: words[match[1]], text)
