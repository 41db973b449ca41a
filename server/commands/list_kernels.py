"""`kopt list`: the kernels that kopt knows."""

from dataclasses import dataclass

import click

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.byte_model import memory_floor_us, workload_bytes
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import visible_kernels
from kopt.server.console import print_document, print_view
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.kernel_table import KernelRow, kernel_table

EPILOG = """\b
Examples:
  kopt list
  kopt list --arch sm_90a       those with a library baseline on Hopper
  kopt list --problems mine/    your own problems too
  kopt list --json"""


@dataclass(frozen=True)
class ListOptions:
    """What the command line asked for."""

    arch: str | None


@click.command("list", epilog=EPILOG)
@click.option(
    "--arch",
    metavar="ARCH",
    help="Only kernels with a library baseline on this architecture, e.g. sm_100a or sm_90a; time "
    f"floors are for its GPU. Default: all kernels, floors for {DEFAULT_ARCH}.",
)
@command_body(ListOptions)
def command(session: Session, options: ListOptions) -> int:
    """List the kernels that kopt knows, with their bytes and time floors."""
    gpu = gpu_for_arch(options.arch or DEFAULT_ARCH)
    problems = list(load_problems(session.settings.problems).values())
    if options.arch is not None:
        problems = [problem for problem in problems if _has_baseline(problem, gpu)]
    rows = [row for problem in problems for row in _rows(problem, gpu, session.settings)]
    if session.as_json:
        print_document(
            {
                "schema": "kopt.list/1",
                "status": "passed",
                "gpu": gpu.name,
                "arch": gpu.arch,
                "kernels": [row.document() for row in rows],
            }
        )
        return ExitCode.PASSED
    if not rows:
        raise ToolError(f"no kernel has a library baseline on {gpu.arch}; 'kopt list' shows all")
    print_view(kernel_table(rows, gpu))
    return ExitCode.PASSED


def _has_baseline(problem: Problem, gpu: GpuSpec) -> bool:
    capability = ".".join(str(part) for part in gpu.compute_capability)
    return any(capability in baseline.devices for baseline in problem.baselines)


def _rows(problem: Problem, gpu: GpuSpec, settings: Settings) -> list[KernelRow]:
    rows: list[KernelRow] = []
    for workload in problem.workloads:
        model = workload_bytes(problem, workload)
        rows.append(
            KernelRow(
                kernel=model.kernel,
                op_type=problem.op_type,
                tolerance=problem.tolerance,
                total_bytes=model.total_bytes,
                memory_floor_us=memory_floor_us(model, gpu),
                baselines=tuple(baseline.name for baseline in problem.baselines),
                shipped=tuple(
                    shipped.label for shipped in visible_kernels(problem, workload, settings)
                ),
            )
        )
    return rows
