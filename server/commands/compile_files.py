"""`kopt compile FILE...`: candidates to cubins, and their resources side by side."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.kernels.compile_result import CompileResult
from kopt.kernels.status import Status
from kopt.server.console import print_document, print_record, print_view
from kopt.server.exits import ExitCode
from kopt.server.find_case import find_case
from kopt.server.options import arch_option, kernel_option, tune_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.resource_table import CompiledFile, compile_view
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


@dataclass(frozen=True)
class CompileOptions:
    """What the command line asked for."""

    files: tuple[Path, ...]
    kernel: str | None
    archs: tuple[str, ...]
    tune: dict[str, int] | None


@click.command("compile", epilog=EPILOG)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@kernel_option(required=False)
@arch_option
@tune_option
@command_body(CompileOptions)
def command(session: Session, options: CompileOptions) -> int:
    """Compile candidates and compare their resources.

    Any number of files and architectures in one call: registers, spills, shared memory,
    theoretical occupancy and what limits it, instructions. No GPU is needed.
    """
    settings = session.settings
    cases = [find_case(file, options.kernel, settings, options.tune) for file in options.files]
    compiled: list[CompiledFile] = []
    with status_line(quiet=session.as_json) as show:
        for file, case in zip(options.files, cases, strict=True):
            show(f"compiling {file} for {', '.join(options.archs)}")
            request = CompileRequest(case, options.archs)
            result = compile_candidate(request, settings)
            compiled.append(CompiledFile(str(file), case.workload.name, result))
    if session.as_json:
        _print_json([file.result for file in compiled])
    else:
        print_view(compile_view(compiled))
    passed = all(file.result.status is Status.PASSED for file in compiled)
    return ExitCode.PASSED if passed else ExitCode.FELL_SHORT


def _print_json(results: list[CompileResult]) -> None:
    if len(results) == 1:
        print_record(results[0])
        return
    failed = [result.status for result in results if result.status is not Status.PASSED]
    print_document(
        {
            "schema": "kopt.compile_list/1",
            "status": failed[0].value if failed else Status.PASSED.value,
            "results": [result.model_dump(mode="json", by_alias=True) for result in results],
        }
    )
