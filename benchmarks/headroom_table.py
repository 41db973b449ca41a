"""The headroom of every kernel as Markdown: printed, or written into a document.

    .venv/bin/python benchmarks/headroom_table.py [--headroom headroom.json] [--write FILE]

A document takes it between two lines of its own (`MARKS`).
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean

from headroom_records import Headroom, HeadroomRow
from markdown_tables import classes, grid, insert_between

MARKS = ("<!-- headroom: written by benchmarks/headroom_table.py -->", "<!-- end of headroom -->")
KEPT = Path(__file__).with_name("headroom.json")
"""What docs/headroom.md and the table of results are made from."""
_COLUMNS = (
    "kernel",
    "MB",
    "baseline",
    "its us",
    "empty us",
    "at ceiling us",
    "copy us",
    "copy GB/s",
    "headroom",
    "over copy",
)
_TEXT = ("kernel", "baseline", "path", "remark")
_PATH_COLUMNS = ("kernel", "path", "us", "p10", "p90", "remark")
_EXPLANATION = (
    "All times are measured, medians of one call with a cold L2, not paired. *empty*: an empty"
    " kernel of one warp, the faster of those with and without programmatic dependent launch."
    " *at ceiling*: the call's bytes at the bandwidth of a large copy, {ceiling:,.0f} GB/s. *copy*:"
    " the fastest of eight copy kernels of as many bytes. *headroom*: baseline / max(empty, at"
    " ceiling). *over copy*: baseline / copy; below 1 the baseline beats kopt's plain copies."
)


def headroom_markdown(found: Headroom) -> str:
    """Return the table, the means, all paths, and what is missing."""
    if not found.rows:
        return "Nothing was measured.\n"
    ceiling = max(row.ceiling_gb_s for row in found.rows)
    gpu = found.gpu
    dates = sorted({row.measured_at[:10] for row in found.rows})
    parts = [
        f"{gpu.name}, driver {gpu.driver_version}, CUDA {gpu.cuda_version}, {' and '.join(dates)}."
        f" {_EXPLANATION.format(ceiling=ceiling)}",
        grid(_COLUMNS, [_cells(row) for row in found.rows], _TEXT),
        "\n".join(_means(found.rows)),
        "Every path:",
        grid(_PATH_COLUMNS, [cells for row in found.rows for cells in _paths(row)], _TEXT),
        "\n".join(_missing(found)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(row: HeadroomRow) -> tuple[str, ...]:
    best = row.times.baseline
    return (
        row.kernel,
        f"{row.total_bytes / 1e6:.2f}",
        best.label,
        f"{best.latency.median_us:.3f}",
        f"{min(row.times.empty_us, row.times.empty_pdl_us):.3f}",
        f"{row.total_bytes / row.ceiling_gb_s / 1e3:.3f}",
        f"{row.copy_time.latency.median_us:.3f}",
        f"{row.copy_time.gb_s:,.0f}",
        f"{row.headroom:.2f}x",
        f"{row.over_copy:.2f}x",
    )


def _means(rows: Sequence[HeadroomRow]) -> Iterator[str]:
    """Yield the geometric means of both classes of workloads."""
    for name, some in classes(rows):
        headroom = geometric_mean([row.headroom for row in some])
        over_copy = geometric_mean([row.over_copy for row in some])
        yield (
            f"- {name} ({len(some)}): geometric mean of the headroom {headroom:.2f}x,"
            f" over the copy {over_copy:.2f}x"
        )


def _paths(row: HeadroomRow) -> Iterator[tuple[str, ...]]:
    times = row.times
    measured = [(path.label, path.latency, "; ".join(path.differences)) for path in times.paths]
    measured.append(("reference", times.reference, "kopt's starting point"))
    for label, latency, remark in sorted(measured, key=lambda entry: entry[1].median_us):
        low, high, _ = latency.spread or (0.0, 0.0, 0.0)
        numbers = (f"{latency.median_us:.3f}", f"{low:.3f}", f"{high:.3f}")
        yield (row.kernel, label, *numbers, remark)
    for path in times.rejected:
        label = f"{path.name}{' +PDL' if path.pdl else ''}"
        yield (row.kernel, label, "-", "-", "-", f"{path.status.replace('_', ' ')}: {path.reason}")


def _missing(found: Headroom) -> Iterator[str]:
    missing = found.planned - len(found.rows)
    if missing:
        yield f"INCOMPLETE: {missing} of {found.planned} kernels have no row."
    for kernel, reason in found.failed.items():
        yield f"- {kernel}: {reason}"


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="The headroom of every kernel.")
    parser.add_argument("--headroom", type=Path, default=KEPT, help="of bench_headroom.py")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    found = Headroom.model_validate_json(options.headroom.read_text("utf-8"))
    text = headroom_markdown(found)
    if options.write is None:
        print(text, end="")
        return
    document = options.write.read_text("utf-8")
    options.write.write_text(insert_between(document, MARKS, text), "utf-8")


if __name__ == "__main__":
    main()
