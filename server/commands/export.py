"""`kopt export WINNER --as FORM`: a kernel as ordinary code, with its launcher and its test."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import click

from kopt.server.exits import ExitCode
from kopt.server.export_source import Choice, find_subject
from kopt.server.options import kernel_option, optional_arch, tune_option
from kopt.server.session import Session, command_body
from kopt.server.views.export_view import export_view
from kopt.tools.export.host_screen import refuse_host_code
from kopt.tools.export.stage import export
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


@dataclass(frozen=True)
class ExportOptions:
    """What the command line asked for."""

    winner: str
    form: str
    folder: Path | None
    kernel: str | None
    arch: str | None
    tune: dict[str, int] | None


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
@command_body(ExportOptions)
def command(session: Session, options: ExportOptions) -> int:
    """Write a kernel as ordinary code: sources, launcher, binding, test against the oracle."""
    choice = Choice(options.kernel, options.arch, options.tune)
    subject = find_subject(options.winner, choice, session.settings)
    form = cast(Form, options.form)  # click has refused every other
    folder = options.folder or Path(f"{subject.name}-{form}")
    refuse_host_code(subject, session.settings)
    result = export(subject, form, folder)
    session.show(result, export_view(result))
    return ExitCode.PASSED
