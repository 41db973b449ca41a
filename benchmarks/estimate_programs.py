"""Programs whose times were measured and kept (benchmarks/tried), followed for the time model.

Following one takes a compile and some tenths of a second; what comes of it is kept below --cache.
"""

import hashlib
import pickle
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import median

from tried_records import FOLDER, TriedCandidate, read_tried

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.domain import narrowed_where
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import workload_bytes
from kopt.search.store.winner import claim
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.estimate.machine.stage import FollowedPlan, follow_plan


@dataclass(frozen=True)
class KeptProgram:
    """A source with one choice of tune values, and its time on a GPU."""

    problem: str
    kernel: str
    arch: str
    source: str
    name: str
    tune: tuple[tuple[str, int], ...]
    measured_us: float

    @property
    def key(self) -> str:
        """Return what is equal for equal programs: a SHA-256."""
        text = "\n".join((self.kernel, self.arch, str(self.tune), self.source))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class TimedProgram:
    """A program with its way through the machine code."""

    kept: KeptProgram
    followed: FollowedPlan

    def error(self, estimated_us: float) -> float:
        """Return ln(estimated / measured)."""
        return log(estimated_us / self.kept.measured_us)


def kept_programs(parts: list[str]) -> list[KeptProgram]:
    """Return every kept program once, with the median of its measured times.

    Args:
        parts: Of kernel ids; () for all.
    """
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    found: dict[tuple[str, str, str], KeptProgram] = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        tried = read_tried(path)
        sources = {one.sha: one for one in tried.sources}
        for one in tried.candidates:
            source = sources.get(one.source)
            if source is None or one.kernel_us is None or not _is_wanted(one, parts):
                continue
            key = (one.kernel, source.code, str(sorted(one.tune.items())))
            times[key].append(one.kernel_us)
            tune = tuple(sorted(one.tune.items()))
            found[key] = KeptProgram(
                path.stem, one.kernel, one.arch, source.text, source.name, tune, 0.0
            )
    return [_with_time(found[key], median(all_of)) for key, all_of in times.items()]


def _with_time(one: KeptProgram, time_us: float) -> KeptProgram:
    return replace(one, measured_us=time_us)


def _is_wanted(one: TriedCandidate, parts: list[str]) -> bool:
    return one.provenance == "measured" and (not parts or any(part in one.kernel for part in parts))


def timed_programs(
    kept: list[KeptProgram], cache: Path, settings: Settings
) -> Iterator[TimedProgram]:
    """Yield the programs that compile, with their ways."""
    cache.mkdir(parents=True, exist_ok=True)
    for one in kept:
        path = cache / f"{one.key}.pickle"
        if path.is_file():
            followed = pickle.loads(path.read_bytes())
        else:
            followed = _followed(one, settings)
            path.write_bytes(pickle.dumps(followed))
        if followed is not None:
            yield TimedProgram(one, followed)


def _followed(one: KeptProgram, settings: Settings) -> FollowedPlan | None:
    problem, workload = find_kernel(one.kernel)
    case = Case(problem, workload, Candidate(one.source, one.name), dict(one.tune))
    if case.header is not None and len(case.domain) > 1:  # nothing is compiled for the others
        alone = claim(one.source, narrowed_where(case.header, problem, [workload]))
        case = Case(problem, workload, Candidate(alone, one.name), dict(one.tune))
    compiled = compile_candidate(CompileRequest(case, (one.arch,), "nvrtc"), settings)
    gpu = gpu_for_arch(one.arch)
    plan = resolve_plan(case, gpu).plan
    if not compiled.builds or plan is None:
        return None
    model = workload_bytes(problem, workload)
    return follow_plan(compiled.builds[0], plan, gpu, model, settings)
