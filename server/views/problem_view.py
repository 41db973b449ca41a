"""One kernel as text: what it computes, its bytes and floors, what is shipped, how to write one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.text import Text

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.precision import PRECISIONS
from kopt.kernels.problem import (
    TOLERANCES,
    USES,
    Problem,
    TensorSpec,
    Workload,
    storage_shape,
)
from kopt.kernels.roofline import ByteModel, Roofline
from kopt.kernels.shipped_kernels import ShippedKernel
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.receipt_seal import STANDINGS, standing_of

from .tables import View, grid

_TENSORS = ("name", "role", "dtype", "shape", "stored as", "bytes#", "what it is")
_ROOFLINES = ("GPU", "memory#", "compute#", "bound by", "ridge#", "empty kernel#")


def problem_view(
    problem: Problem, workload: Workload, model: ByteModel, rooflines: Sequence[Roofline]
) -> View:
    """Yield the definition, the workloads, the byte model and the rooflines."""
    yield Text(model.kernel, style="bold")
    yield Text(f"{problem.description.strip()}\n")
    axes = (
        f"{name} = {workload.axes[name]}" + (f" ({expression})" if expression else "")
        for name, expression in problem.axes.items()
    )
    rows = "no axis has independent rows"
    if problem.row_axis is not None:
        rows = f"rows along {problem.row_axis} are independent"
    yield Text(f"Axes: {', '.join(axes)}; {rows}")
    if problem.scalars:
        values = problem.scalars_at(workload)
        scalars = (f"{item.name} = {item.value} ({item.dtype})" for item in values)
        yield Text(f"Scalars: {', '.join(scalars)}")
    yield Text(f"Tolerance {problem.tolerance}: {TOLERANCES[problem.tolerance]}")
    if problem.precision != "ieee":
        yield Text(f"Precision {problem.precision}: {PRECISIONS[problem.precision]}")
    yield _heading("Tensors, in call order")
    yield _tensor_table(problem.tensors, workload, model)
    yield Text(
        f"{model.read_bytes:,} bytes read, {model.written_bytes:,} written; {model.flop:,} flop,"
        f" {model.flop_per_byte:.2f} flop per byte (computed)"
    )
    yield _heading("Time floors from the data sheets (computed, not predictions)")
    yield _roofline_table(rooflines)
    yield _heading("Workloads")
    yield Text("\n".join(_workload_lines(problem)))
    yield _heading("Baselines")
    yield Text("\n".join(_baseline_lines(problem)))


def shipped_view(kernels: Sequence[ShippedKernel], workload: Workload, settings: Settings) -> View:
    """Yield the kernels that lie beside the problem, with what is known of each; else nothing."""
    if not kernels:
        return
    lines = "\n".join(
        f"{one.label}: {_shown_path(one.source)}{_speedup(one, workload, settings)}"
        for one in kernels
    )
    note = {
        "winner": "winner: its receipt, which lies beside it, says faster than the baseline: kopt"
        " verify measures it again, kopt export makes ordinary code of it.",
        "unproven": "unproven: never run on that GPU; what is known lies beside it (.facts.json,"
        " docs/blackwell.md).",
    }
    standings = dict.fromkeys(one.standing for one in kernels)
    yield _heading("Shipped kernels")
    yield Text(lines)
    yield from (Text(note[standing], style="dim") for standing in standings)


def _speedup(one: ShippedKernel, workload: Workload, settings: Settings) -> str:
    """Return what a winner's receipt says of the workload, on a line of its own."""
    if one.standing != "winner":
        return ""
    try:
        receipt = read_receipt(one.evidence)
        standing = STANDINGS[standing_of((receipt,), settings)]
    except ToolError as error:
        return f"\n  without proof: {error}"
    found = [entry for entry in receipt.workloads if entry.workload == workload.name]
    return "".join(
        f"\n  {entry.speedup:.3f}x {entry.baseline.label} ({entry.range[0]:.3f} to"
        f" {entry.range[1]:.3f} in {len(entry.measurements)} measurements), measured on"
        f" {receipt.device.name}, {receipt.promoted_at[:10]};"
        f"\n  {standing}"
        for entry in found
    )


def example_view(example: str | None, skeleton: str) -> View:
    """Yield how to write a candidate, around a complete one, or a skeleton if there is none."""
    if example is not None:
        source = example
        what = (
            "This is the reference kernel, complete and correct, which searches start from"
            " (--example prints it alone, --skeleton one with the right arguments and an empty"
            " body):\n"
        )
    else:
        source = skeleton
        what = (
            "This problem has no reference.cu: here is one with the right arguments and an empty"
            " body (--skeleton prints it alone):\n"
        )
    yield _heading("How to write a candidate (all of it: docs/candidates.md)")
    yield Text(
        "One .cu file: a header comment that says how it is launched, then device code. " + what
    )
    yield Syntax(source.rstrip(), "cuda", background_color="default", word_wrap=True)
    yield Text()


def _shown_path(path: Path) -> str:
    """Return the path as it is shortest from here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _heading(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _tensor_table(
    tensors: Sequence[TensorSpec], workload: Workload, model: ByteModel
) -> RenderableType:
    table = grid(*_TENSORS, header_style="dim")
    sizes = {entry.name: max(entry.read_bytes, entry.written_bytes) for entry in model.tensors}
    for tensor in tensors:
        stored = " x ".join(str(part) for part in storage_shape(tensor, workload.axes)) or "1"
        remarks = [tensor.description.strip()] + ["static"] * tensor.static
        table.add_row(
            tensor.name,
            tensor.role,
            tensor.dtype,
            f"({', '.join(tensor.shape)})",
            stored if tensor.layout == "row_major" else f"{stored} {tensor.layout}",
            f"{sizes[tensor.name]:,}",
            "; ".join(remark for remark in remarks if remark),
        )
    return table


def _roofline_table(rooflines: Sequence[Roofline]) -> RenderableType:
    rows = (
        (
            line.gpu,
            f"{line.memory_floor_us:.3f} us",
            f"{line.compute_floor_us:.3f} us",
            "launch" if line.is_launch_dominated else line.bound,
            f"{line.ridge_flop_per_byte:.1f} flop/byte",
            f"{line.null_kernel_us:.2f} us",
        )
        for line in rooflines
    )
    return grid(*_ROOFLINES, rows=rows, header_style="dim")


def _workload_lines(problem: Problem) -> Iterator[str]:
    for one in problem.workloads:
        use = "" if one.use == "both" else f"  ({one.use}: {USES[one.use]})"
        yield f"{problem.kernel_id(one)}{use}"


def _baseline_lines(problem: Problem) -> Iterator[str]:
    for baseline in problem.baselines:
        devices = ", ".join(baseline.devices) or "any device"
        pdl = " and ".join("on" if is_on else "off" for is_on in baseline.pdl)
        yield (
            f"{baseline.name}: {baseline.entry} of baseline.py, layout {baseline.layout},"
            f" PDL {pdl}, meant for {devices}"
        )
    if problem.baselines:
        yield "Which of them work on a device, and the fastest, 'kopt bench' finds out there."
    else:
        yield "none from a library: the reference kernel stands in"
