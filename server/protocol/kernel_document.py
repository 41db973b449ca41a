"""The text of `kopt://kernels/{id}`: definition, how to write a candidate, reference source.

Loads numpy by way of the problems and rich by way of the views: import it inside the call.
"""

from io import StringIO

from rich.console import Console, Group

from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.byte_model import roofline, workload_bytes
from kopt.kernels.candidate import read_candidate
from kopt.kernels.candidate_guide import GUIDE
from kopt.kernels.candidate_skeleton import candidate_skeleton
from kopt.kernels.families import FAMILY_CHANGES
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.server.views.problem_view import problem_view

from .choices import known_kernel

_WIDTH = 160


def kernel_document(kernel_id: str, settings: Settings) -> str:
    """Return everything that a candidate's author needs, as Markdown.

    Raises:
        ToolError: There is no such kernel; the message has near matches.
    """
    problem, workload = find_kernel(known_kernel(kernel_id, settings), settings.problems)
    model = workload_bytes(problem, workload)
    lines = [roofline(model, gpu) for gpu in load_gpus().values()]
    written = StringIO()
    console = Console(file=written, width=_WIDTH, color_system=None, emoji=False, highlight=False)
    console.print(Group(*problem_view(problem, workload, model, lines)))
    definition = "\n".join(line.rstrip() for line in written.getvalue().splitlines())
    families = "\n".join(f"- {name}: {change}" for name, change in FAMILY_CHANGES.items())
    parts = [
        f"# {kernel_id}\n\n```text\n{definition}\n```",
        f"## How to write a candidate\n\n{GUIDE}\nFamilies:\n\n{families}",
        f"## A candidate whose body is still empty\n\n{_code(candidate_skeleton(problem))}",
    ]
    reference = problem.folder / "reference.cu"
    if reference.is_file():
        source = read_candidate(reference).source
        parts.append(f"## The reference kernel, complete and correct\n\n{_code(source)}")
    step = f"Next: write a candidate and call check_correctness with kernel={kernel_id}."
    return "\n\n".join((*parts, step)) + "\n"


def kernel_index(settings: Settings) -> str:
    """Return a line for each problem with its kernel ids, as Markdown.

    Raises:
        ToolError: A problem of the user's has mistakes.
    """
    lines = [
        f"- {problem.name} ({problem.op_type}): {', '.join(problem.kernel_ids)}"
        for problem in load_problems(settings.problems).values()
    ]
    return "\n".join(("# Kernels (kopt://kernels/{id} has one of them whole)", "", *lines)) + "\n"


def _code(source: str) -> str:
    # Four backticks: a source may hold three.
    return f"````cuda\n{source.rstrip()}\n````"
