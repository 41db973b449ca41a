"""Print the table of the shipped winners from their receipts, or write it into documents.

    .venv/bin/python benchmarks/results_table.py [--headroom headroom.json] [--write FILE ...]

A document takes the table between two lines of its own:

    <!-- results: written by benchmarks/results_table.py -->
    <!-- end of results -->

or, where the first of them says `results in short`, five of its rows and the means. Copies are
those of benchmarks/headroom.json where that file is there (`bench_headroom.py`). Which winners were
verified on another GPU is what `kopt verify` printed into benchmarks/verified.txt.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean

from headroom_table import KEPT, Headroom
from markdown_tables import classes, grid, insert_between
from result_rows import LAUNCH_DOMINATED, Result, read_results

from kopt.kernels.problem_loader import load_problems

MARKS = ("<!-- results: written by benchmarks/results_table.py -->", "<!-- end of results -->")
SHORT_MARKS = (
    "<!-- results in short: written by benchmarks/results_table.py -->",
    "<!-- end of results in short -->",
)
SHORT_KERNELS = (
    "silu_and_mul_b8xh14336",
    "fused_add_rmsnorm_quant_b8xh8192",
    "rope_quantize_fp8_n128xh128",
    "fused_add_rmsnorm_fp8_block_quant_b128xh7168",
    "fused_add_rmsnorm_b1024xh8192",
)
"""The greatest gain, the greatest without an outlying baseline, two of 128 rows, the first of them
written by a search without a model, and the least."""
VERIFIED = Path(__file__).with_name("verified.txt")
VERIFY = ".venv/bin/kopt verify kernels/problems/*/winners/*.receipt.json"
_COLUMNS = (
    "kernel",
    "shape",
    "baseline",
    "baseline us",
    "kopt us",
    "speedup",
    "95 % interval",
    "of roofline",
    "of a copy",
)
_SHORT_COLUMNS = ("kernel", "baseline", "baseline us", "kopt us", "speedup", "95 % interval")
_TEXTS = ("kernel", "GPU", "shape", "baseline")
_VERIFY_CELLS = 8
"""Kernel, receipt, accepted, now, 95 % interval, verdict, against, outcome."""


def results_markdown(results: Sequence[Result], verified: str = "") -> str:
    """Return one table for each device and driver, with the means below it.

    Args:
        results: The rows.
        verified: What `kopt verify` printed of the receipts; empty where nobody ran it.
    """
    if not results:
        return "No winner is shipped yet.\n"
    parts = [_group(rows) for rows in _by_device(results)]
    parts.append(f"Measured again by one command: `{VERIFY}`.")
    if verified:
        done = verified_kernels(results, verified)
        left = ", ".join(f"`{row.kernel}`" for row in results if row.kernel not in done)
        told = f"{len(done)} of {len(results)} reproduced by it on another GPU than the receipt's"
        parts.append(
            f"{told} (benchmarks/verified.txt){f'; not verified yet: {left}' * bool(left)}."
        )
    return "\n\n".join(parts) + "\n"


def short_markdown(results: Sequence[Result]) -> str:
    """Return the rows of `SHORT_KERNELS` and the means of all `results`, for a first page."""
    shown = [row for name in SHORT_KERNELS for row in results if row.kernel == name]
    picked = [_short_cells(row) for row in shown]
    kernel, *others = _SHORT_COLUMNS
    parts = [grid((kernel, "GPU", *others), picked, _TEXTS)]
    for rows in _by_device(results):
        means = "\n".join(_means(rows))
        parts.append(f"{rows[0].device.name}, measured:\n\n{means}")
    return "\n\n".join(parts) + "\n"


def _short_cells(row: Result) -> list[str]:
    cells = dict(zip(_COLUMNS, _cells(row), strict=True))
    kernel, *others = (cells[one] for one in _SHORT_COLUMNS)
    return [kernel, row.device.name, *others]


def _by_device(results: Sequence[Result]) -> list[list[Result]]:
    """Return the rows of each device and driver, which no mean joins."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for row in results:
        groups.setdefault((row.device.name, row.device.driver_version), []).append(row)
    return list(groups.values())


def printed_cells(printed: str) -> list[list[str]]:
    """Return the cells of the table of kernels that `kopt verify` printed."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in printed.splitlines()]
    return [cells for cells in lines if len(cells) == _VERIFY_CELLS]


def verified_kernels(results: Sequence[Result], printed: str) -> list[str]:
    """Return the kernels of which `printed`, of `kopt verify`, says that the receipt reproduced.

    A line counts for the receipt with the speedup that it names: of an earlier one it says nothing.
    """
    said = {(one[0], one[1]) for one in printed_cells(printed) if one[-1] == "reproduced"}
    return [row.kernel for row in results if (row.kernel, f"{row.speedup:.3f}x") in said]


def shipped_results(headroom: Path = KEPT) -> list[Result]:
    """Return the winners that come with the problems, with the copies measured in `headroom`."""
    measured = None
    if headroom.is_file():
        measured = Headroom.model_validate_json(headroom.read_text("utf-8"))
    return read_results(list(load_problems().values()), measured)


def with_tables(document: str, results: Sequence[Result]) -> str:
    """Return `document` with the table that it has a place for.

    Raises:
        ValueError: It has no place for either table.
    """
    if SHORT_MARKS[0] in document:
        return insert_between(document, SHORT_MARKS, short_markdown(results))
    verified = VERIFIED.read_text("utf-8")
    return insert_between(document, MARKS, results_markdown(results, verified))


def _group(rows: Sequence[Result]) -> str:
    device = rows[0].device
    dates = " to ".join(
        dict.fromkeys((min(row.date for row in rows), max(row.date for row in rows)))
    )
    named = {part for row in rows if row.library is not None for part in row.library.split(", ")}
    libraries = ", ".join(sorted(named))
    counts = " or ".join(str(count) for count in sorted({row.measurements for row in rows}))
    columns = _COLUMNS if any(row.copy != "-" for row in rows) else _COLUMNS[:-1]
    cells = [_cells(row)[: len(columns)] for row in rows]
    lines = [
        f"{device.name}, driver {device.driver_version}, CUDA {device.cuda_version}, {dates}"
        f"{f', baselines of {libraries}' if libraries else ''}.",
        grid(columns, cells, _TEXTS),
        "\n".join(_means(rows)),
        _explanation(rows, counts),
    ]
    return "\n\n".join(lines)


def _cells(row: Result) -> tuple[str, ...]:
    low, high = row.interval
    return (
        f"`{row.kernel}`{' (flagged)' if row.flagged else ''}",
        row.shape,
        row.baseline,
        f"{row.baseline_us:.3f}",
        f"{row.us:.3f}",
        f"{row.speedup:.3f}x",
        f"{low:.3f} to {high:.3f}",
        row.roofline,
        row.copy,
    )


def _means(rows: Sequence[Result]) -> list[str]:
    named = [*classes(rows), ("all", list(rows))]
    means = [
        (name, len(some), geometric_mean([row.speedup for row in some])) for name, some in named
    ]
    return [f"- geometric mean, {name} ({count}): {mean:.2f}x" for name, count, mean in means]


def _explanation(rows: Sequence[Result], counts: str) -> str:
    parts = [
        "All measured. Time: the median of one call, L2 cold. Speedup: baseline time / kernel time"
        f" in pairs, the median of {counts} measurements in two fresh processes. Interval: from"
        " the lowest to the highest end of their 95 % intervals. The baseline is the fastest"
        " library path that passes its check. *of roofline* is computed: the call's bytes at the"
        " data sheet's bandwidth / the time"
    ]
    if any(row.roofline.endswith(LAUNCH_DOMINATED) for row in rows):
        parts.append(
            f" ({LAUNCH_DOMINATED} an empty kernel takes longer than the bytes, so the percentage"
            " says little)"
        )
    parts.append(".")
    if any(row.copy != "-" for row in rows):
        where = (
            ", on different GPUs of the model" if any(row.is_copy_elsewhere for row in rows) else ""
        )
        parts.append(
            " *of a copy*: the time of a copy of as many bytes / the time, both measured but not"
            f" together{where}: good to some percent."
        )
    if any(row.flagged for row in rows):
        parts.append(" *flagged*: the receipt names something in the binary that raises scrutiny.")
    return "".join(parts)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="The shipped winners as a table.")
    parser.add_argument("--headroom", type=Path, default=KEPT, help="of bench_headroom.py")
    parser.add_argument("--write", type=Path, nargs="+", default=[], metavar="FILE")
    options = parser.parse_args()
    results = shipped_results(options.headroom)
    for path in options.write:
        try:
            path.write_text(with_tables(path.read_text("utf-8"), results), "utf-8")
        except ValueError as error:
            raise SystemExit(f"{path}: {error}") from error
    if not options.write:
        print(results_markdown(results, VERIFIED.read_text("utf-8")), end="")


if __name__ == "__main__":
    main()
