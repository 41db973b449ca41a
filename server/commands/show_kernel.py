"""`kopt show ID`: everything about one kernel, and how to write a candidate for it."""

from dataclasses import dataclass

import click

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.byte_model import roofline, workload_bytes
from kopt.kernels.candidate import read_candidate
from kopt.kernels.candidate_skeleton import candidate_skeleton
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.shipped_kernels import visible_kernels
from kopt.server.console import print_document, print_view
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.problem_view import example_view, problem_view, shipped_view

EPILOG = """\b
Examples:
  kopt show add_rmsnorm_fp4quant_b128xh2048
  kopt show silu_and_mul_b8xh14336 --example > mine.cu
  kopt show silu_and_mul_b8xh14336 --skeleton > mine.cu
  kopt show add_rmsnorm_fp4quant_b128xh2048 --json"""


@dataclass(frozen=True)
class ShowOptions:
    """What the command line asked for."""

    kernel: str
    example: bool
    skeleton: bool


@click.command("show", epilog=EPILOG)
@click.argument("kernel", metavar="ID")
@click.option("--example", is_flag=True, help="Only a complete candidate: the reference kernel.")
@click.option("--skeleton", is_flag=True, help="Only a candidate whose body is still empty.")
@command_body(ShowOptions)
def command(session: Session, options: ShowOptions) -> int:
    """Show one kernel: definition, tensors, bytes, rooflines, baselines, how to write one."""
    if options.example and options.skeleton:
        raise click.UsageError("--example and --skeleton exclude each other")
    problem, workload = find_kernel(options.kernel, session.settings.problems)
    model = workload_bytes(problem, workload)
    rooflines = [roofline(model, gpu) for gpu in load_gpus().values()]
    shipped = visible_kernels(problem, workload, session.settings)
    skeleton = candidate_skeleton(problem)
    reference = problem.folder / "reference.cu"
    has_example = reference.is_file() or options.example
    example = read_candidate(reference).source if has_example else None
    if session.as_json:
        print_document(
            {
                "schema": "kopt.show/1",
                "status": "passed",
                "kernel": model.kernel,
                "workload": workload.name,
                "problem": problem.model_dump(mode="json", by_alias=True),
                "byte_model": model.model_dump(mode="json", by_alias=True),
                "rooflines": [line.model_dump(mode="json", by_alias=True) for line in rooflines],
                "shipped": [
                    {"standing": one.standing, "arch": one.arch, "source": str(one.source)}
                    for one in shipped
                ],
                "reference": str(reference),
                "example": example,
                "skeleton": skeleton,
            }
        )
    elif options.example or options.skeleton:
        click.echo(example if options.example else skeleton, nl=False)
    else:
        print_view(problem_view(problem, workload, model, rooflines))
        print_view(shipped_view(shipped, workload))
        print_view(example_view(model.kernel, example, skeleton))
    return ExitCode.PASSED
