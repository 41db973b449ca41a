"""Draw how one kernel was optimized, from the records of what was tried: the picture of README.md.

    .venv/bin/python benchmarks/progress_picture.py [--write docs/images/progress.svg]

Nothing is measured here. Each mark is a measured candidate with its 95 % interval; the line is the
best so far. The speed of a copy is that of benchmarks/headroom.json.
"""

import argparse
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from headroom_table import KEPT, Headroom
from tried_records import FOLDER, TriedCandidate, read_tried

KERNEL = "fused_add_rmsnorm_fp8_block_quant_b8xh7168"
STEPS = {
    ("171257-437", 3): "a block a row, 448 threads",
    ("172309-558", 3): "a row over a cluster of two blocks",
    ("172344-384", 0): "four blocks",
    ("200117-255", 0): "sums exchanged by st.async",
    ("200117-255", 1): "seven blocks of 128 threads",
}
"""What the candidates are that moved the best, by the end of their run's id and their number."""
WIDTH, HEIGHT = 820, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 46, 44
LOW, HIGH = 0.95, 2.0
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.axis { stroke: #8c959f; stroke-width: 1 } .limit { stroke: #8c959f; stroke-dasharray: 5 4 }
.best { stroke: #2da44e; stroke-width: 2.5; fill: none } .mark { fill: #57606a }
.range { stroke: #57606a }
.top { fill: #2da44e } .title { font-weight: 600; font-size: 15px } .quiet { fill: #57606a }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .quiet, .mark { fill: #9ea7b3 } .range { stroke: #9ea7b3 }
  .best { stroke: #3fb950 } .top { fill: #3fb950 }
}"""


def picture(tried: Sequence[TriedCandidate], copy_speedup: float, device: str) -> str:
    """Return the SVG of candidates in the order in which they were evaluated.

    Args:
        tried: Candidates of one kernel; those without a measured speedup have no mark.
        copy_speedup: Baseline time / time of a copy of as many bytes.
        device: Name of the GPUs.
    """
    measured = [one for one in tried if one.speedup is not None]
    parts = [
        f'<text class="title" x="{LEFT}" y="22">{KERNEL}: speed against FlashInfer</text>',
        *_limit(1.0, "FlashInfer, 1.00x"),
        *_limit(copy_speedup, f"a copy of as many bytes, {copy_speedup:.2f}x"),
        *_axes(len(measured)),
        *_marks(measured),
        f'<text class="quiet" x="{LEFT}" y="{HEIGHT - 8}">{len(measured)} candidates in the'
        f" order of measurement, with 95 % intervals; {escape(device)}</text>",
    ]
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        f' aria-label="Measured speedup of {len(measured)} candidates of {KERNEL}">'
        f"<style>{_STYLE}</style>\n{body}\n</svg>\n"
    )


def _y(speedup: float) -> float:
    share = (speedup - LOW) / (HIGH - LOW)
    return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _x(number: int, count: int) -> float:
    return round(LEFT + (number + 0.5) * (WIDTH - LEFT - RIGHT) / count, 1)


def _limit(speedup: float, name: str) -> Iterator[str]:
    y = _y(speedup)
    yield f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
    yield (
        f'<text class="quiet" text-anchor="end" x="{WIDTH - RIGHT}"'
        f' y="{y - 6}">{escape(name)}</text>'
    )


def _axes(count: int) -> Iterator[str]:
    low, high = _y(LOW), _y(HIGH)
    yield f'<line class="axis" x1="{LEFT}" x2="{LEFT}" y1="{low}" y2="{high}"/>'
    yield f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{low}" y2="{low}"/>'
    for speedup in (1.0, 1.2, 1.4, 1.6, 1.8, 2.0):
        y = _y(speedup)
        place = f'text-anchor="end" x="{LEFT - 8}" y="{y + 4}"'
        yield f'<text class="quiet" {place}>{speedup:.1f}x</text>'


def _marks(measured: Sequence[TriedCandidate]) -> Iterator[str]:
    best = 0.0
    line: list[str] = []
    labels: list[str] = []
    for number, one in enumerate(measured):
        speedup = one.speedup or 0.0
        x, y = _x(number, len(measured)), _y(speedup)
        is_best = speedup > best
        if is_best:
            line += [f"{x},{_y(best)}", f"{x},{y}"] if line else [f"{x},{y}"]
            best = speedup
        low, high = one.interval or (speedup, speedup)
        yield f'<line class="range" x1="{x}" x2="{x}" y1="{_y(low)}" y2="{_y(high)}"/>'
        yield f'<circle class="{"top" if is_best else "mark"}" cx="{x}" cy="{y}" r="4"/>'
        said = STEPS.get((one.run[-10:], one.seq))
        if said is not None:
            labels.append(
                f'<text text-anchor="end" x="{x - 8}" y="{y - 8}">{escape(said)},'
                f" {speedup:.2f}x</text>"
            )
    line.append(f"{WIDTH - RIGHT},{_y(best)}")
    yield f'<polyline class="best" points="{" ".join(line)}"/>'
    yield from labels


def shipped_picture() -> str:
    """Return the picture of `KERNEL` from the kept records."""
    problem = KERNEL.rsplit("_", 1)[0]
    tried = read_tried(FOLDER / f"{problem}.jsonl")
    candidates = [one for one in tried.candidates if one.kernel == KERNEL]
    headroom = Headroom.model_validate_json(KEPT.read_text("utf-8"))
    row = next(row for row in headroom.rows if row.kernel == KERNEL)
    devices = " and ".join(sorted({one.device for one in candidates}))
    return picture(
        candidates, row.times.baseline.latency.median_us / row.copy_time.latency.median_us, devices
    )


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="How one kernel was optimized, as a picture.")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.write is None:
        print(shipped_picture(), end="")
    else:
        options.write.write_text(shipped_picture(), "utf-8")


if __name__ == "__main__":
    main()
