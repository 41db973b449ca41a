"""`kopt show ID`: everything about one kernel, and how to write a candidate for it."""

from itertools import chain

import click

from kopt.config.gpu_specs import featured_gpus
from kopt.kernels.candidate import read_candidate
from kopt.kernels.candidate_guide import candidate_skeleton
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.kernels.shipped_kernels import visible_kernels
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.problem_view import example_view, problem_view, shipped_view
from kopt.server.what_next import after_show

EPILOG = """\b
Examples:
  kopt show add_rmsnorm_fp4quant_b128xh2048
  kopt show silu_and_mul_b8xh14336 --example > mine.cu
  kopt show silu_and_mul_b8xh14336 --skeleton > mine.cu
  kopt show add_rmsnorm_fp4quant_b128xh2048 --json"""


@click.command("show", epilog=EPILOG)
@click.argument("kernel", metavar="ID")
@click.option("--example", is_flag=True, help="Only a complete candidate: the reference kernel.")
@click.option("--skeleton", is_flag=True, help="Only a candidate whose body is still empty.")
@command_body()
def command(session: Session, kernel: str, example: bool, skeleton: bool) -> int:
    """Show one kernel: definition, tensors, bytes, rooflines, baselines, how to write one."""
    if example and skeleton:
        raise click.UsageError("--example and --skeleton exclude each other")
    problem, workload = find_kernel(kernel, session.settings.problems)
    model = workload_bytes(problem, workload)
    rooflines = [roofline(model, gpu) for gpu in featured_gpus()]
    shipped = visible_kernels(problem, workload, session.settings)
    empty = candidate_skeleton(problem)
    reference = problem.folder / "reference.cu"
    source = read_candidate(reference).source if reference.is_file() or example else None
    if (example or skeleton) and not session.as_json:
        click.echo(source if example else empty, nl=False)
        return ExitCode.PASSED
    document = {
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
        "example": source,
        "skeleton": empty,
    }
    views = (
        problem_view(problem, workload, model, rooflines),
        shipped_view(shipped, workload, session.settings),
        example_view(source, empty),
    )
    flag = "--skeleton" if source is None else "--example"
    session.show(document, chain(*views), *after_show(model.kernel, flag))
    return ExitCode.PASSED
