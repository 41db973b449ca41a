"""The roofline of the workload with its candidates on it: both axes logarithmic.

All candidates do the work of the same definition, so they stand above each other: at its
arithmetic intensity, as high as the operations that they do per second.
"""

from kopt.kernels.roofline import ByteModel, Roofline

from .candidate_chart import mark_kind
from .run_report import RunReport
from .svg import LogScale, figure, line, mark, polyline, text, value_axis
from .yardstick import title_of, yardstick_of

_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 30, 40


def roofline_chart(report: RunReport, model: ByteModel, roof: Roofline) -> str | None:
    """Return an SVG element; None for a definition without floating-point operations."""
    timed = [entry for entry in report.population if entry.latency_us]
    if not model.flop or not timed:
        return None
    # 1e12 operations per second = 1e6 operations per microsecond
    heights = {e.seq: model.flop / (e.latency_us or 1.0) / 1e6 for e in timed}
    peak = roof.attainable_tflop_s * max(1.0, roof.ridge_flop_per_byte / roof.flop_per_byte)
    across = LogScale(
        min(roof.flop_per_byte, roof.ridge_flop_per_byte) / 10,
        max(roof.flop_per_byte, roof.ridge_flop_per_byte) * 10,
        _LEFT,
        _WIDTH - _RIGHT,
    )
    up = LogScale(min(heights.values()) / 3, peak * 3, _HEIGHT - _BOTTOM, _TOP)
    parts = value_axis(up, (_LEFT, _WIDTH - _RIGHT), "Tflop/s")
    parts += _roof(roof, peak, across, up)
    launch = model.flop / roof.null_kernel_us / 1e6
    if up.low < launch < up.high:
        ends = ((_LEFT, up.px(launch)), (_WIDTH - _RIGHT, up.px(launch)))
        words = text(_WIDTH - _RIGHT, up.px(launch) - 5, "an empty kernel's time", "end")
        parts += [line("even", *ends), words]
    yardstick = yardstick_of(report)
    x = across.px(roof.flop_per_byte)
    for entry in timed:
        place = (x, up.px(heights[entry.seq]))
        parts.append(mark(mark_kind(entry, report.winner), place, title_of(entry, yardstick)))
    label = f"Candidates under the roofline of {roof.gpu}; operations and bytes computed"
    return figure((_WIDTH, _HEIGHT), label, parts)


def _roof(roof: Roofline, peak: float, across: LogScale, up: LogScale) -> list[str]:
    """Return both arms, the intensity of the workload and the axis below."""
    base = up.begin_px
    bandwidth = peak / roof.ridge_flop_per_byte  # Tflop/s per flop/byte = TB/s
    lowest = max(across.low, up.low / bandwidth)
    arms = [(lowest, lowest * bandwidth), (roof.ridge_flop_per_byte, peak), (across.high, peak)]
    x = across.px(roof.flop_per_byte)
    middle = (lowest * roof.ridge_flop_per_byte) ** 0.5
    parts = [
        polyline("roof", [(across.px(at), up.px(height)) for at, height in arms]),
        text(across.end_px, up.px(peak) - 6, f"{peak:.0f} Tflop/s fp32", "end"),
        text(
            across.px(middle) - 8,
            up.px(middle * bandwidth) - 8,
            f"{bandwidth:.2f} TB/s DRAM",
            "end",
        ),
        line("even", (x, up.px(roof.attainable_tflop_s)), (x, base)),
        text(x + 8, base - 6, f"{roof.flop_per_byte:.2g} flop/byte"),
        line("axis", (across.begin_px, base), (across.end_px, base)),
        text((across.begin_px + across.end_px) / 2, base + 32, "flop per byte", "middle"),
    ]
    parts += [text(across.px(tick), base + 16, f"{tick:g}", "middle") for tick in across.ticks()]
    return parts
