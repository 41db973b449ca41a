"""Compile results as text: the table of resources, side by side over files and architectures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.compile_result import Build, CompileResult, KernelResources, Occupancy
from kopt.tools.facts.compile_facts import MANY_FUNCTIONS, total_words, worst_first

from .diagnostics import advice_text, diagnostics_text, status_text, unserved_lines
from .tables import View, WideOrNarrow, grid

HEADER = (
    *("function", "arch", "regs", "spill B", "stack B", "static smem", "occupancy", "limited by"),
    *("SASS", "compiled"),
)
TABLE_NOTE = "occupancy: theoretical, computed from the resources and the launch; not achieved."


@dataclass(frozen=True)
class CompiledFile:
    """One file with what compiling it told, for the workload that its kernel id names."""

    name: str
    workload: str
    result: CompileResult


def compile_view(files: Sequence[CompiledFile]) -> View:
    """Yield the resource table of everything that compiled, then what did not and why."""
    if any(file.result.builds for file in files):
        yield from _tables(files)
        yield Text(TABLE_NOTE, style="dim")
    for file in files:
        yield from _remarks(file)
    passed = sum(file.result.status == "passed" for file in files)
    yield Text(f"{passed} of {len(files)} compiled")


def _tables(files: Sequence[CompiledFile]) -> Iterator[RenderableType]:
    """Yield one table for each file below its name; columns are as wide in all of them.

    A terminal that is too narrow for them gets each row as a list.
    """
    rows = {file.name: list(_rows(file)) for file in files}
    every = [HEADER, *(row for file_rows in rows.values() for row in file_rows)]
    widths = [max(len(row[column]) for row in every) for column in range(len(HEADER))]
    wide: list[RenderableType] = [_table([HEADER], widths, "bold")]
    narrow: list[RenderableType] = []
    for file in files:
        if rows[file.name]:
            title = Text(f"{file.result.kernel}  {file.name}", style="bold")
            wide += (title, _table(rows[file.name], widths, ""))
            narrow += (title, grid(*HEADER, rows=_named(rows[file.name]), whole=HEADER))
    yield WideOrNarrow(sum(widths) + len(widths) - 1, wide, narrow)


def _named(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield rows of which each names its function, which in a table stands in the first alone."""
    name = ""
    for function, *cells in rows:
        name = function.strip() or name
        yield (name, *cells)


def _table(rows: Sequence[tuple[str, ...]], widths: Sequence[int], style: str) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False, style=style)
    for name, width in zip(HEADER, widths, strict=True):
        left = name in ("function", "arch", "limited by")
        table.add_column(justify="left" if left else "right", min_width=width, style=style)
    for row in rows:
        table.add_row(*row)
    return table


def _rows(file: CompiledFile) -> Iterator[tuple[str, ...]]:
    """Yield one row for each function and architecture, architectures next to each other."""
    builds = [build for build in file.result.builds if file.workload in build.workloads]
    occupancy = {(entry.kernel, entry.gpu): entry for entry in file.result.occupancy}
    kernels = [kernel for build in builds for kernel in build.kernels]
    names = list(dict.fromkeys(kernel.name for kernel in worst_first(kernels)))
    for name in names[:MANY_FUNCTIONS]:
        shown = f"  {name}"
        for build in builds:
            for kernel in build.kernels:
                if kernel.name == name:
                    yield (shown, build.arch, *_cells(build, kernel, occupancy))
                    shown = ""


def _cells(
    build: Build, kernel: KernelResources, occupancy: dict[tuple[str, str], Occupancy]
) -> tuple[str, ...]:
    entry = occupancy.get((kernel.name, gpu_for_arch(build.arch).name))
    return (
        str(kernel.registers_per_thread),
        str(kernel.spill_store_bytes + kernel.spill_load_bytes),
        str(kernel.stack_bytes),
        str(kernel.static_smem_bytes),
        f"{entry.theoretical_occupancy:.0%}" if entry else "-",
        ", ".join(entry.limiters).replace("_", " ") if entry else "-",
        "-" if kernel.instructions is None else str(kernel.instructions),
        "cached" if build.cached else f"{build.compile_s:.2f} s",
    )


def _remarks(file: CompiledFile) -> Iterator[RenderableType]:
    result = file.result
    if (totals := total_words(result)) is not None:
        yield Text(f"{file.name}: {totals}; --json has each")
    others = [build for build in result.builds if file.workload not in build.workloads]
    if others:
        more = "1 more build serves" if len(others) == 1 else f"{len(others)} more builds serve"
        yield Text(f"{file.name}: {more} other workloads; --json has them")
    if result.flagged:
        yield Text(f"{file.name}: looked at twice because of: {', '.join(result.flagged)}")
    if result.diagnostics:
        yield diagnostics_text(file.name, result.diagnostics)
    yield from unserved_lines(result.unserved)
    if result.status != "passed":
        yield Text.assemble(f"{file.name}: ", status_text(result.status))
        yield advice_text(result.status)
        if result.log_path:
            yield Text(f"Whole compiler output: {result.log_path}")
