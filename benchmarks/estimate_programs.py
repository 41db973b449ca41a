"""Programs whose times were measured and kept (benchmarks/tried), followed for the time model.

Each is compiled, run by a quick check on the simulator, which counts its accesses, and followed, as
a search on the simulator does it: some two seconds. What comes of it is kept below --cache.
"""

import hashlib
import pickle
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from statistics import median

from tried_records import TriedCandidate, read_tried

from kopt.config.gpu_specs import GpuSpec, gpu_for_arch, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.domain import narrowed_where
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import ByteModel, workload_bytes
from kopt.search.store.winner import claim
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.check.stage import check_candidate
from kopt.tools.estimate.counted_floor import nearest_way
from kopt.tools.estimate.machine.stage import FollowedPlan, follow_plan
from kopt.tools.estimate.machine.timing_constants import Clocks
from kopt.tools.estimate.stage import estimate_followed
from kopt.tools.sim.device import SimDevice


@dataclass(frozen=True)
class KeptProgram:
    """A source with one choice of tune values, and its time on a GPU."""

    problem: str
    kernel: str
    arch: str
    device: str
    """The GPU's name by its driver."""
    source: str
    name: str
    tune: tuple[tuple[str, int], ...]
    measured_us: float

    @property
    def gpu(self) -> GpuSpec:
        """The data sheet of the GPU, else the one that stands for the architecture."""
        described = (sheet for sheet in load_gpus().values() if sheet.describes(self.device))
        return next(described, gpu_for_arch(self.arch))

    @property
    def key(self) -> str:
        """Return what is equal for equal programs: a SHA-256."""
        text = "\n".join((self.kernel, self.arch, self.gpu.name, str(self.tune), self.source))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class TimedProgram:
    """A program with its way through the machine code and what the simulator counted."""

    kept: KeptProgram
    way: "Way"

    def time_us(self, clocks: Clocks) -> float:
        """Return the estimate; with other constants than the model's that of the way alone."""
        way = self.way
        if clocks != Clocks():
            return way.followed.time_us(clocks)
        known = (way.model, way.counters)
        return estimate_followed(way.followed, way.plan, self.kept.gpu, known).latency_us

    def error(self, estimated_us: float) -> float:
        """Return ln(estimated / measured)."""
        return log(estimated_us / self.kept.measured_us)


@dataclass(frozen=True)
class Way:
    """What the time of a program is estimated from."""

    followed: FollowedPlan
    plan: LaunchPlan
    model: ByteModel
    counters: ExecutionCounters | None


def kept_programs(folder: Path, parts: list[str]) -> list[KeptProgram]:
    """Return every kept program once for each GPU, with the median of its measured times.

    Args:
        folder: Records of what was tried.
        parts: Of kernel ids; () for all.
    """
    times: dict[tuple[str, ...], list[float]] = defaultdict(list)
    found: dict[tuple[str, ...], KeptProgram] = {}
    for path in sorted(folder.glob("*.jsonl")):
        tried = read_tried(path)
        sources = {one.sha: one for one in tried.sources}
        for one in tried.candidates:
            source = sources.get(one.source)
            if source is None or one.kernel_us is None or not _is_wanted(one, parts):
                continue
            key = (one.kernel, one.device, source.code, str(sorted(one.tune.items())))
            times[key].append(one.kernel_us)
            tune = tuple(sorted(one.tune.items()))
            found[key] = KeptProgram(
                path.stem, one.kernel, one.arch, one.device, source.text, source.name, tune, 0.0
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
            way: Way | None = pickle.loads(path.read_bytes())
        else:
            way = _way(one, settings)
            path.write_bytes(pickle.dumps(way))
        if way is not None:
            yield TimedProgram(one, way)


def _way(one: KeptProgram, settings: Settings) -> Way | None:
    problem, workload = find_kernel(one.kernel)
    case = Case(problem, workload, Candidate(one.source, one.name), dict(one.tune))
    if case.header is not None and len(case.domain) > 1:  # nothing is compiled for the others
        alone = claim(one.source, narrowed_where(case.header, problem, [workload]))
        case = Case(problem, workload, Candidate(alone, one.name), dict(one.tune))
    gpu = one.gpu
    asked = CheckRequest(case, "quick", compiler="nvrtc", arch=one.arch)
    checked = check_candidate(asked, SimDevice(settings, gpu=gpu), settings)
    compiled = checked.compiled
    plan = make_plans(asked, gpu).final(compiled, gpu, simulated=False).get(workload.name)
    if not compiled.builds or plan is None:
        return None
    model = workload_bytes(problem, workload)
    first = follow_plan(compiled.builds[0], plan, gpu, model, settings)
    return Way(nearest_way(first, checked.counters), plan, model, checked.counters)
