"""`kopt compile FILE...`: candidates to cubins, and their resources side by side."""

from pathlib import Path

import click

from kopt.kernels.compile_result import CompileResult
from kopt.kernels.record import Record
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode
from kopt.server.find_case import find_case
from kopt.server.options import arch_option, kernel_option, tune_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.compile_view import CompiledFile, compile_view
from kopt.server.what_next import after_compile
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate

EPILOG = """\b
Examples:
  kopt compile mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt compile mine.cu --kernel silu_and_mul_b8xh14336 --arch sm_100a,sm_90a
  kopt compile kernels/problems/*/reference.cu --arch sm_100a,sm_90a

\b
With --json one file gives a kopt.compile/1 document, several files a
kopt.compile_list/1 document whose `results` are such documents.
Exit codes: 0 all compiled, 1 one did not, 2 wrong usage, 3 no compiler."""


@click.command("compile", epilog=EPILOG)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@kernel_option(required=False)
@arch_option
@tune_option
@command_body()
def command(
    session: Session,
    files: tuple[Path, ...],
    kernel: str | None,
    archs: tuple[str, ...],
    tune: dict[str, int] | None,
) -> int:
    """Compile candidates and compare their resources.

    Any number of files and architectures in one call: registers, spills, shared memory,
    theoretical occupancy and what limits it, instructions. No GPU is needed.
    """
    cases = [find_case(file, kernel, session.settings, tune) for file in files]
    compiled: list[CompiledFile] = []
    with status_line(quiet=session.as_json) as show:
        for file, case in zip(files, cases, strict=True):
            show(f"compiling {file} for {', '.join(archs)}")
            result = compile_candidate(CompileRequest(case, archs), session.settings)
            compiled.append(CompiledFile(str(file), case.workload.name, result))
    document = _document([file.result for file in compiled])
    session.show(document, compile_view(compiled), after_compile(compiled, archs, tune))
    passed = all(file.result.status is Status.PASSED for file in compiled)
    return ExitCode.PASSED if passed else ExitCode.FELL_SHORT


def _document(results: list[CompileResult]) -> Record | dict[str, object]:
    if len(results) == 1:
        return results[0]
    failed = (result.status for result in results if result.status is not Status.PASSED)
    return {
        "schema": "kopt.compile_list/1",
        "status": next(failed, Status.PASSED),
        "results": [result.model_dump(mode="json", by_alias=True) for result in results],
    }
