"""What `kopt export` says to people."""

from rich.text import Text

from kopt.tools.export.stage import ExportResult

from .diagnostics import unserved_lines
from .tables import View


def export_view(result: ExportResult) -> View:
    """Yield where the export lies, what proves it, and how to build and test it."""
    proof = (
        f"proven by receipt {result.receipt[:12]}"
        if result.receipt
        else "without a receipt: nothing proves its results or its speed"
    )
    yield Text(f"{result.folder}: {len(result.files)} files, {result.form}, {result.arch}, {proof}")
    yield Text(f"serves {', '.join(result.kernels)}")
    yield from unserved_lines(result.unserved)
    yield Text(f"test it on a GPU: cd {result.folder} && {result.test}")
