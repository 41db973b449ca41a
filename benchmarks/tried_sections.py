"""The rows and sections of what was tried: one kernel's candidates as tables."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_tables import grid
from tried_records import Place, TriedCandidate, TriedSource, Winner, place_of

from kopt.kernels.status import Status, Verdict
from kopt.search.reports.markdown import plain

OVERVIEW = (
    *("kernel", "baseline", "candidates", "faster", "inconclusive", "slower", "failed"),
    *("best", "95 % interval", "us", "winner"),
)
TEXTS = ("kernel", "winner", "run", "GPU", "code", "tried", "best choice", "baseline")
_RUNS = (
    *("run", "GPU", "code", "tried", "baseline", "candidates", "faster", "inconclusive", "slower"),
    *("failed", "best", "95 % interval", "us", "best choice"),
)
_Candidates = Sequence[TriedCandidate]


@dataclass(frozen=True)
class KernelTried:
    """What was tried for one kernel on one device, and what was promoted."""

    kernel: str
    candidates: _Candidates
    """At least one."""
    sources: Mapping[str, TriedSource]
    """By digest."""
    winner: Winner | None
    """What was promoted on this device, or else on another one."""

    @property
    def is_promoted_elsewhere(self) -> bool:
        """Whether what was promoted was measured on another device."""
        return self.winner is not None and self.winner.device != self.candidates[0].device

    @property
    def place(self) -> Place | None:
        """Where the winner stands among the candidates."""
        if self.winner is None:
            return None
        return place_of(self.winner, self.candidates, self.sources)

    def code(self, one: TriedCandidate) -> str:
        """Return the name of a candidate's code."""
        return self.sources[one.source].code


def overview_row(tried: KernelTried) -> tuple[str, ...]:
    """Return one kernel's row of the first table."""
    return (
        f"`{tried.kernel}`",
        ", ".join(_baselines(tried.candidates)) or "-",
        *_counts(tried.candidates),
        *_best(tried.candidates)[:3],
        _standing(tried),
    )


def kernel_section(tried: KernelTried) -> str:
    """Return what was tried for one kernel, run by run."""
    rows = [
        (
            run,
            _gpu(some[0]),
            f"`{tried.code(some[0])}`",
            _swept(some),
            ", ".join(_baselines(some)) or "-",
            *_counts(some),
            *_best(some),
        )
        for run, some in _runs(tried.candidates)
    ]
    parts = [f"#### {tried.kernel}\n", f"{grid(_RUNS, rows, TEXTS)}\n"]
    remarks = [*_worths(tried), *_failures(tried.candidates), *_promoted(tried)]
    parts.extend(f"- {remark}" for remark in remarks)
    return "\n".join(parts) + ("\n" if remarks else "")


def _runs(candidates: _Candidates) -> Iterator[tuple[str, list[TriedCandidate]]]:
    """Yield the candidates of each run and code."""
    for run, source in dict.fromkeys((one.run, one.source) for one in candidates):
        yield run, [one for one in candidates if (one.run, one.source) == (run, source)]


def _gpu(one: TriedCandidate) -> str:
    """Return the first digits of the GPU's UUID."""
    return "-" if one.gpu is None else one.gpu.removeprefix("GPU-").partition("-")[0]


def _baselines(candidates: _Candidates) -> list[str]:
    return sorted({one.baseline for one in candidates if one.baseline})


def _counts(candidates: _Candidates) -> tuple[str, ...]:
    verdicts = Counter(one.verdict for one in candidates)
    failed = sum(one.verdict is None for one in candidates)
    three = (verdicts[one] for one in (Verdict.FASTER, Verdict.INCONCLUSIVE, Verdict.SLOWER))
    return (str(len(candidates)), *map(str, three), str(failed))


def _best(candidates: _Candidates) -> tuple[str, str, str, str]:
    best = max(candidates, key=lambda one: one.speedup or 0.0)
    if best.speedup is None or best.interval is None or best.kernel_us is None:
        return "-", "-", "-", "-"
    low, high = best.interval
    return (
        f"{best.speedup:.3f}x",
        f"{low:.3f} to {high:.3f}",
        f"{best.kernel_us:.3f}",
        _choice(best.tune),
    )


def _choice(tune: dict[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in tune.items()) or "-"


def _values(candidates: _Candidates) -> dict[str, list[int]]:
    """Return the values of each tune name in ascending order."""
    values: dict[str, set[int]] = defaultdict(set)
    for one in candidates:
        for name, value in one.tune.items():
            values[name].add(value)
    return {name: sorted(known) for name, known in values.items()}


def _swept(candidates: _Candidates) -> str:
    several = {name: known for name, known in _values(candidates).items() if len(known) > 1}
    return "; ".join(f"{n} {', '.join(map(str, known))}" for n, known in several.items()) or "-"


def _worths(tried: KernelTried) -> Iterator[str]:
    """Yield what each code reached with each value that was swept for it."""
    every = tried.candidates
    for code, baseline in dict.fromkeys((tried.code(one), one.baseline) for one in every):
        alike = [
            one for one in every if tried.code(one) == code and one.baseline in (baseline, None)
        ]
        told = "; ".join(_worth(alike))
        if told and baseline:
            yield f"`{code}` reached {told}"


def _worth(candidates: _Candidates) -> Iterator[str]:
    """Yield the best ratio with each value of what was swept, the best value first."""
    for name, values in _values(candidates).items():
        found: list[tuple[float, int]] = []
        for value in values:
            speeds = [one.speedup or 0.0 for one in candidates if one.tune.get(name) == value]
            found.append((max(speeds), value))
        if len(found) > 1:
            ordered = sorted(found, key=lambda pair: (-pair[0], pair[1]))
            told = [f"{f'{x:.3f}x' if x else 'nothing'} with {value}" for x, value in ordered]
            yield f"{name}: {', '.join(told)}"


def _failures(candidates: _Candidates) -> Iterator[str]:
    """Yield what failed, equal summaries once."""
    failed = [one for one in candidates if one.verdict is None]
    for status, summary in dict.fromkeys((one.status, one.summary) for one in failed):
        same = [one for one in failed if (one.status, one.summary) == (status, summary)]
        name = "no time that counts" if status is Status.PASSED else f"`{status.value}`"
        choices = "; ".join(_choice(one.tune) for one in same)
        yield f"{name} ({len(same)}): {choices}: {plain(summary)}"


def _standing(tried: KernelTried) -> str:
    if tried.winner is None:
        return "none promoted"
    if tried.is_promoted_elsewhere:
        return f"measured on {plain(tried.winner.device)}"
    place = tried.place
    return "not among them" if place is None else f"place {place.number} of {place.of}"


def _promoted(tried: KernelTried) -> Iterator[str]:
    """Yield which file was promoted, if one was, and where it stands here."""
    winner, place = tried.winner, tried.place
    if winner is None:
        return
    file = f"`{winner.problem}/{winner.file}`"
    told = f"promoted: {file} with {_choice(winner.tune)}, {winner.speedup:.3f}x"
    if tried.is_promoted_elsewhere:
        yield f"{told} on {plain(winner.device)}; not among the candidates here"
        return
    if place is None:
        yield f"{told}; these values are not among the candidates here"
        return
    text = "the same code" if place.same_code else "in another text"
    if place.added:
        text += f" without {', '.join(place.added)}"
    ratio = f"{place.candidate.speedup:.3f}x"
    yield f"{told}; here place {place.number} of {place.of} with {ratio} ({text})"
