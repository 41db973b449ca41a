"""The text of an export's files: templates of Jinja that lie beside the code, and comments.

In a template `@{...}` is a value and `<% ... %>` a statement on a line of its own: neither means
anything in C++, Python, make or Markdown. A name that was not given is an error.
"""

import textwrap
from collections.abc import Iterable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from kopt import __version__
from kopt.config.plain_text import plain
from kopt.kernels.problem import ScalarSpec, TensorSpec

from .exported_kernel import ExportedKernel
from .type_names import cpp_constant

_WIDTH = 100
_MARKUP = frozenset("\\`*[]<>|")


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("kopt.tools.export"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        variable_start_string="@{",
        variable_end_string="}",
        block_start_string="<%",
        block_end_string="%>",
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own: dict[str, Any] = {"comment": comment, "constant": cpp_constant}
    own["cell"] = cell
    own |= {"names": _names, "quoted": _quoted, "values": _values}
    environment.filters.update(own)
    return environment


def filled(template: str, **words: object) -> str:
    """Return the text of `templates/<template>.txt` with `words` in its places."""
    return _templates().get_template(f"{template}.txt").render(words)


def _names(tensors: Iterable[TensorSpec]) -> tuple[str, ...]:
    return tuple(tensor.name for tensor in tensors)


def _values(scalars: Iterable[ScalarSpec]) -> str:
    return ", ".join(f"{scalar.name} = {scalar.value!r}" for scalar in scalars)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def cell(text: str) -> str:
    """Return `text` of a receipt for one line of Markdown, without markup of its own."""
    line = plain(" ".join(text.split()))
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in line)


def comment(text: str, indent: int = 0) -> str:
    """Return `text` as C++ comment lines, wrapped."""
    return wrapped(" ".join(text.split()), " " * indent + "// ", " " * indent + "// ")


def wrapped(text: str, first: str, later: str) -> str:
    """Return `text` behind `first`, and its further lines behind `later`."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=later,
        break_on_hyphens=False,
        break_long_words=False,
    )


def provenance_line(exported: ExportedKernel) -> str:
    """Return one sentence: what made this file, from what."""
    digest = exported.candidate.id[:16]
    return (
        f"Written by kopt {__version__} from {exported.candidate.name} (SHA-256 {digest}...);"
        " README.md says what is known of it."
    )


def measured_speedup(exported: ExportedKernel) -> str:
    """Return in one or two sentences what was measured of the kernel, or that nothing was."""
    receipt = exported.receipt
    if receipt is None:
        return "Not promoted: there is no proof of its results or its speed."
    shown = ", ".join(
        f"{one.speedup:.3f}x at {one.workload} ({one.range[0]:.3f} to {one.range[1]:.3f})"
        f" against {one.baseline.label}"
        for one in receipt.workloads
    )
    known = "Measured by kopt" if exported.is_proven else "Claimed by its receipt: measured by kopt"
    return f"{known} on {receipt.device.name}: {shown}; receipt {receipt.digest}."
