"""The best kernel that is known beside a result, as facts: its time, and where its source is."""

from pathlib import Path

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.best_known import BestKnown

from .fitting import Facts, given
from .wording import plain_beginning, tune_words

DOCUMENTS = "kopt://docs/"
_LABEL_CHARACTERS = 80


def known_facts(known: BestKnown) -> Facts:
    """Return what a kernel is, its times, and the address that `path` takes."""
    measured = known.measured
    return given(
        kernel=known.label,
        tune=tune_words(known.tune),
        estimated=given(latency_us=known.estimated_us),
        measured=None if measured is None else _measured(known),
        path=known_address(known),
    )


def known_address(known: BestKnown) -> str:
    """Return the address of a known kernel's whole source."""
    if known.standing == "run":
        return known.source
    from kopt.tools.docs.own.whole_files import shipped_path  # and the index of documents with it

    return f"{DOCUMENTS}{shipped_path(Path(known.source))}"


def _measured(known: BestKnown) -> str:
    """Return a measured time in words, with its GPU and what it was compared with."""
    one = known.measured
    if one is None:
        return ""
    against = "" if one.speedup is None else f", {one.speedup:.3f}x {one.baseline}"
    return plain_beginning(f"{one.latency_us:.4g} us on {one.gpu}{against}", 2 * _LABEL_CHARACTERS)


def estimated_answer(result: BenchResult) -> str:
    """Return what an estimate says, the best known kernel first and the naive one last."""
    if result.latency is None:
        return "ESTIMATED, NOT MEASURED: no time"
    time_us = result.latency.median_us
    words = [f"ESTIMATED, NOT MEASURED: {time_us:.4g} us"]
    known = result.best_known
    if known is not None and known.estimated_us is not None:
        words.append(_beside(time_us, known, result.resolution or 0.0))
    words += [
        f"{one.speedup:.3g}x the naive {one.baseline.label}"
        for one in result.comparisons
        if one.speedup is not None
    ]
    return "; ".join(words)


def _beside(time_us: float, known: BestKnown, resolution: float) -> str:
    known_us = known.estimated_us or time_us
    name = f"the best known, {known.label}, {known_us:.4g} us"
    ratio = known_us / time_us
    if max(ratio, 1.0 / ratio) <= 1.0 + resolution:
        return f"a tie with {name} (nearer than {100 * resolution:g}%)"
    return f"{ratio:.2f}x the speed of {name}"
