"""What `kopt export` says to people."""

from rich.console import Group, RenderableType
from rich.text import Text

from kopt.tools.export.stage import ExportResult

from .diagnostics import unserved_lines


def export_view(result: ExportResult) -> RenderableType:
    """Return where the export lies, what proves it, and how to build and test it."""
    proof = (
        f"proven by receipt {result.receipt[:12]}"
        if result.receipt
        else "without a receipt: nothing proves its results or its speed"
    )
    return Group(
        Text(f"{result.folder}: {len(result.files)} files, {result.form}, {result.arch}, {proof}"),
        Text(f"serves {', '.join(result.kernels)}"),
        *unserved_lines(result.unserved),
        Text(f"test it on a GPU: cd {result.folder} && {result.test}"),
    )
