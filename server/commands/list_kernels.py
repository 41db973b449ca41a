"""`kopt list`: the kernels that kopt knows."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click
from rich.text import Text

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, target_named
from kopt.config.near_matches import near_matches
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.roofline import compute_floor_us, memory_floor_us, workload_bytes
from kopt.kernels.shipped_kernels import visible_kernels
from kopt.server.exits import ExitCode
from kopt.server.find_case import has_baseline
from kopt.server.options import target_option
from kopt.server.session import Session, command_body
from kopt.server.views.tables import NOTHING, View, grid
from kopt.tools.facts.next_command import NextCommand

EPILOG = """\b
Examples:
  kopt list
  kopt list silu                those with this text in id or description
  kopt list --arch sm_90a       those with a library baseline on Hopper
  kopt list --problems mine/    your own problems too
  kopt list --json"""


@dataclass(frozen=True)
class KernelRow:
    """One kernel id with what the list says about it."""

    kernel: str
    op_type: str
    tolerance: str
    total_bytes: int
    """Every input once and every output once."""
    memory_floor_us: float
    """`total_bytes` over the data-sheet bandwidth of the GPU asked for."""
    floor_us: float
    """That, or the time of the operations at the GPU's peaks where it is longer."""
    baselines: tuple[str, ...]
    shipped: tuple[str, ...] = ()
    """Kernels that lie beside the problem: `winner for sm_90a`, `unproven for sm_100a`."""


@click.command("list", epilog=EPILOG)
@target_option(
    "Only kernels with a library baseline on this architecture, e.g. sm_100a or sm_90a; time "
    f"floors are for its GPU. Default: all kernels, floors for {DEFAULT_ARCH}.",
)
@click.argument("text", required=False)
@command_body()
def command(session: Session, arch: str | None, text: str | None) -> int:
    """List the kernels that kopt knows, with their bytes and time floors.

    With TEXT only those whose id, operation or description has it.
    """
    gpu = target_named(arch or DEFAULT_ARCH).gpu
    problems = list(load_problems(session.settings.problems).values())
    if arch is not None:
        problems = [problem for problem in problems if has_baseline(problem, gpu)]
        if not problems and not session.as_json:
            raise ToolError(
                f"no kernel has a library baseline on {gpu.arch}; 'kopt list' shows all"
            )
    rows = [row for problem in problems for row in _rows(problem, gpu, session.settings)]
    if text is not None:
        rows = _having(text, rows, problems)
    document = {
        "schema": "kopt.list/1",
        "status": "passed",
        "gpu": gpu.name,
        "arch": gpu.arch,
        "kernels": [asdict(row) for row in rows],
    }
    shown = [NextCommand(("kopt", "show", row.kernel), "or another of these") for row in rows[:1]]
    session.show(document, _view(rows, gpu), *shown)
    return ExitCode.PASSED


def _having(text: str, rows: Sequence[KernelRow], problems: Sequence[Problem]) -> list[KernelRow]:
    """Return the rows with `text` in them, in any case of letters.

    Raises:
        ToolError: There is none.
    """
    sought = text.casefold()
    told = {id_: p.description.casefold() for p in problems for id_ in p.kernel_ids}
    found = [
        row
        for row in rows
        if any(sought in words for words in (row.kernel, row.op_type, told[row.kernel]))
    ]
    if not found:
        near = near_matches(sought, {problem.name for problem in problems})
        raise ToolError(f"no kernel has {text[:80]!r} in its id or description; {near}")
    return found


def _view(rows: Sequence[KernelRow], gpu: GpuSpec) -> View:
    floor = f"floor {gpu.name}"
    heads = ("kernel id", "operation", "tolerance", "bytes#", f"{floor}#", "library baseline")
    table = grid(*heads, "shipped", whole=(*heads[:3], floor))
    for row in rows:
        table.add_row(
            row.kernel,
            row.op_type,
            row.tolerance,
            f"{row.total_bytes:,}",
            f"{row.floor_us:.2f} us",
            _libraries(row.baselines) or "none",
            ", ".join(row.shipped) or NOTHING,
        )
    yield table
    yield Text(
        f"floor: bytes / {gpu.dram_bandwidth_gb_s:,.0f} GB/s of {gpu.name}, or operations at its"
        f" peak where they take longer, computed; an empty kernel takes {gpu.null_kernel_us} us.",
        style="dim",
    )


def _libraries(baselines: Sequence[str]) -> str:
    """Return `torch, flashinfer (3 paths)` for torch, flashinfer_cudnn and two more of its paths.

    A path is called by its library, and what tells it from others behind an underscore.
    """
    libraries = [name.partition("_")[0] for name in baselines]
    shown = [
        name if libraries.count(library) == 1 else f"{library} ({libraries.count(library)} paths)"
        for name, library in zip(baselines, libraries, strict=True)
    ]
    return ", ".join(dict.fromkeys(shown))


def _rows(problem: Problem, gpu: GpuSpec, settings: Settings) -> list[KernelRow]:
    return [
        KernelRow(
            kernel=model.kernel,
            op_type=problem.op_type,
            tolerance=problem.tolerance,
            total_bytes=model.total_bytes,
            memory_floor_us=memory_floor_us(model, gpu),
            floor_us=max(memory_floor_us(model, gpu), compute_floor_us(model, gpu)),
            baselines=tuple(baseline.name for baseline in problem.baselines),
            shipped=tuple(one.label for one in visible_kernels(problem, workload, settings)),
        )
        for workload in problem.workloads
        for model in (workload_bytes(problem, workload),)
    ]
