"""The list of kernels as a table."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.table import Table
from rich.text import Text

from kopt.config.gpu_specs import GpuSpec

from .tables import View


@dataclass(frozen=True)
class KernelRow:
    """One kernel id with what the list says about it."""

    kernel: str
    op_type: str
    tolerance: str
    total_bytes: int
    """Every input once and every output once."""
    memory_floor_us: float
    """Those bytes over the data-sheet bandwidth of the GPU asked for."""
    baselines: tuple[str, ...]
    shipped: tuple[str, ...] = ()
    """Kernels that lie beside the problem: `winner for sm_90a`, `unproven for sm_100a`."""

    def document(self) -> dict[str, object]:
        """Return the row as JSON fields."""
        return asdict(self)


def kernel_table(rows: Sequence[KernelRow], gpu: GpuSpec) -> View:
    """Yield the table with one row for each kernel id."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kernel id", no_wrap=True)
    table.add_column("operation", no_wrap=True)
    table.add_column("tolerance", no_wrap=True)
    table.add_column("bytes", justify="right")
    table.add_column(f"floor {gpu.name}", justify="right", no_wrap=True)
    table.add_column("library baseline")
    table.add_column("shipped")
    for row in rows:
        table.add_row(
            row.kernel,
            row.op_type,
            row.tolerance,
            f"{row.total_bytes:,}",
            f"{row.memory_floor_us:.2f} us",
            ", ".join(row.baselines) or "none",
            ", ".join(row.shipped) or "-",
        )
    note = Text(
        f"floor: bytes / {gpu.dram_bandwidth_gb_s:,.0f} GB/s of {gpu.name}, computed; an empty"
        f" kernel takes {gpu.null_kernel_us} us. Next: kopt show ID",
        style="dim",
    )
    yield table
    yield note
