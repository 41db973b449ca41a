"""The sentences of a benchmark, the same for people and for models: its verdict and its doubts."""

from collections.abc import Iterator

from kopt.kernels.bench_result import BenchResult, Comparison, RejectedBaseline, Rotation
from kopt.kernels.status import Verdict

SPEEDUPS = "Speedups are measured: baseline time / candidate time, medians over pairs of replays."
ACCEPTED = (
    "Accepted: the receipt's range, widened by the noise, or on another GPU of the same model by a"
    " quarter of the gain, at most 3 %, where that is more."
)
"""What stands below a receipt's figures and new ones."""


def verdict_words(verdict: Verdict, main: Comparison | None) -> str:
    """Return one sentence: the ratio with its interval, and what stands behind it."""
    if verdict is Verdict.IMPOSSIBLE:
        return (
            "Impossible: shorter than the memory needs for the bytes. The time counts for nothing"
        )
    if main is None:
        return "Nothing to compare with: no baseline runs here"
    name = main.baseline.label
    if verdict is Verdict.ESTIMATED and main.speedup is not None:
        return f"ESTIMATED, NOT MEASURED: {main.speedup:.2f}x the speed of {name}"
    if main.speedup is None or main.interval is None:
        return f"Not compared with {name}: {verdict.value.replace('_', ' ')}"
    digits = ratio_digits(main.interval)
    ratio = f"{main.speedup:.{digits}f}x"
    evidence = f"{interval_words(main.interval)}{_evidence(main)}"
    match verdict:
        case Verdict.FASTER:
            return f"{ratio} faster than {name}, {evidence}"
        case Verdict.SLOWER:
            return f"Slower than {name}: {ratio} its speed, {evidence}"
        case Verdict.NOT_LIKE_FOR_LIKE:
            reasons = "; ".join(main.like_for_like.differences)
            return f"Not like for like with {name} ({reasons}): {ratio}, {evidence}"
        case _:
            return f"No difference from {name} that can be told: {ratio}, {evidence}"


def interval_words(interval: tuple[float, float]) -> str:
    """Return `95 % interval 1.20 to 1.22`."""
    digits = ratio_digits(interval)
    return f"95 % interval {interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def ratio_digits(interval: tuple[float, float]) -> int:
    """Return how many decimals of a ratio mean something: more would be noise."""
    return 2 if interval[1] - interval[0] > 0.019 else 3


def percent(fraction: float) -> str:
    """Return 0.0021 as `0.21 %`."""
    return f"{fraction * 100:.2g} %"


def _evidence(comparison: Comparison) -> str:
    floor = comparison.noise_floor
    noise = "" if floor is None else f", noise threshold {percent(floor.threshold)}"
    return f", {comparison.pairs} pairs{noise}"


def l2_words(rotation: Rotation) -> str:
    """Return whether times over these buffer sets are those of a cold L2."""
    return "cold" if rotation.is_cold else "warm: the buffer sets do not fill the L2 twice"


def rejected_words(path: RejectedBaseline) -> str:
    """Return which baseline was not timed, and why."""
    pdl = "on" if path.pdl else "off"
    return f"{path.name} (PDL {pdl}): {path.status.replace('_', ' ')}, {path.reason}"


def doubts(result: BenchResult) -> Iterator[str]:
    """Yield what a reader must know before believing the times; nothing if nothing is odd."""
    if result.rotation is not None and not result.rotation.is_cold:
        yield f"times are {l2_words(result.rotation)}"
    outputs = result.timed_outputs
    if outputs is not None and outputs.identical + outputs.within_gates < outputs.calls:
        wrong = outputs.calls - outputs.identical - outputs.within_gates
        yield f"{wrong} of {outputs.calls} timed calls have wrong outputs"
    state = result.state
    if state is not None and state.throttle:
        yield f"the GPU throttled: {', '.join(state.throttle)}"
    if state is not None and state.other_processes:
        yield f"{state.other_processes} other processes use the GPU"
