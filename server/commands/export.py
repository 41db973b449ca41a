"""`kopt export WINNER --as FORM`: a kernel as ordinary code, with its launcher and its test."""

from pathlib import Path
from typing import Any

import click
from rich.text import Text

from kopt.server.exits import ExitCode
from kopt.server.export_source import ExportChoice, find_subject
from kopt.server.options import kernel_option, optional_arch, tune_option
from kopt.server.session import Session, command_body
from kopt.server.views.diagnostics import unserved_lines
from kopt.server.views.tables import View
from kopt.tools.export.host_screen import refuse_host_code
from kopt.tools.export.stage import ExportResult, export
from kopt.tools.export.subject import FORMS, Form

EPILOG = """\b
Examples:
  kopt export b8xh4096.sm_90a.receipt.json --as torch
  kopt export fused_add_rmsnorm_b8xh4096 --as cuda -o fused_add_rmsnorm/
  kopt export run-20260101-120000-000/12 --as tvm-ffi
  kopt export mine.cu --kernel silu_and_mul_b8xh14336 --arch sm_90a --as cuda

\b
WINNER is a receipt, a source (a receipt beside it is taken along), RUN/NUMBER
for a candidate of a run, or a kernel id, which means its promoted winner. The
folder builds and tests itself: its README has the command (docs/export.md).
Exit codes: 0 written, 2 nothing that can be exported so, 3 the folder cannot be
written."""


@click.command("export", epilog=EPILOG)
@click.argument("winner", metavar="WINNER")
@click.option(
    "--as",
    "form",
    required=True,
    type=click.Choice(FORMS),
    help="cuda: C++ and CUDA sources, make and CMake. torch: a package with an operator. tvm-ffi: "
    "a package with a function of TVM-FFI. flashinfer-trace: a Solution with its Definition.",
)
@click.option(
    "-o",
    "--to",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A new or empty folder.  [default: ./PROBLEM-FORM]",
)
@kernel_option(required=False)
@click.option(
    "--arch",
    callback=optional_arch,
    metavar="ARCH",
    help="Compiler target.  [default: what the receipt, the run or the file's name says]",
)
@tune_option
@command_body()
def command(session: Session, winner: str, form: Form, folder: Path | None, **choice: Any) -> int:
    """Write a kernel as ordinary code: sources, launcher, binding, test against the oracle."""
    subject = find_subject(winner, ExportChoice(**choice), session.settings)
    refuse_host_code(subject, session.settings)
    result = export(subject, form, folder or Path(f"{subject.name}-{form}"))
    session.show(result, export_view(result))
    return ExitCode.PASSED


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
