"""Print where the wall time of evaluations and promotions on a GPU goes, phase by phase.

    PYTHONPATH=benchmarks/phases python -P benchmarks/phases/bench_phases.py [--device cuda:0]
        [--home DIR] [--evaluations N] [--promote] [KERNEL | FILE=KERNEL ...]

Every kernel is evaluated N times as a search does it, the first time apart from the rest: it starts
the worker, builds libraries and runs oracles. Sources differ by a comment, so that each is
compiled. Times are inclusive; those of the worker come from the worker. Without -P the worker does
not find `timed_engine.py`.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

from phase_clock import PhaseClock, Spent, since, table
from timed_engine import TIMES_FILE

import kopt.tools.gpu.open_gpu as gpu_opening
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel
from kopt.search.evaluation.evaluate_job import evaluate_job
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import EvaluationJob
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.gpu.messages import Answer, Request
from kopt.tools.gpu.worker_process import WorkerEnd, WorkerProcess

KERNELS = (
    "merge_state_n2048xh64xd128",
    "rope_quantize_fp8_n1024xh128",
    "silu_and_mul_b1024xh14336",
    "fused_add_rmsnorm_b1024xh8192",
    "fused_add_rmsnorm_b8xh4096",
)
_LEAST_S = 0.02
TARGETS = (
    "kopt.search.evaluation.evaluate_job:check_candidate",
    "kopt.search.evaluation.evaluate_job:_judge_speed",
    "kopt.tools.check.stage:compile_candidate",
    "kopt.tools.check.stage:run_cases",
    "kopt.tools.check.run_cases:execute_run",
    "kopt.tools.check.run_cases:compare_poisons",
    "kopt.tools.check.run_case:judge",
    "kopt.tools.check.run_case:measure_accuracy",
    "kopt.tools.check.oracle_cache:_read",
    "kopt.tools.check.oracle_cache:make_case_data",
    "kopt.tools.check.oracle_cache:case_hash",
    "kopt.tools.check.oracle_cache:OracleCache._write",
    "kopt.tools.bench.stage:verify",
    "kopt.tools.bench.stage:launched_program",
    "kopt.tools.bench.stage:choose_contestants",
    "kopt.tools.bench.stage:time_side_by_side",
    "kopt.tools.bench.baselines:reference_kernel",
    "kopt.tools.bench.baselines:check_path",
    "kopt.tools.bench.baselines:sort_paths",
    "kopt.tools.bench.reference_side:verify",
    "kopt.tools.bench.reference_side:compile_candidate",
    "kopt.tools.bench.timed_case:execute_run",
    "kopt.tools.bench.timed_case:compare_poisons",
    "kopt.tools.bench.timed_outputs:OutputInspector.inspect",
    "kopt.tools.bench.timed_outputs:outputs_of_set",
    "kopt.tools.bench.timed_outputs:count_differing",
    "kopt.tools.bench.timed_outputs:judge",
    "kopt.tools.bench.promotion:check_candidate",
    "kopt.tools.bench.promotion:sanitize",
    "kopt.tools.bench.promotion:time_repeatedly",
    "kopt.tools.bench.repeated_timing:time_once",
    "kopt.tools.gpu.timing_session:MappedFile",
    "kopt.tools.gpu.array_file:write_arrays",
    "kopt.tools.gpu.worker_pool:WorkerPool.process_for",
    "kopt.tools.gpu.worker_pool:WorkerPool.create_context",
    "kopt.tools.gpu.worker_pool:WorkerPool.settle",
    "kopt.tools.gpu.worker_process:WorkerProcess.end",
)


@dataclass(frozen=True)
class Bench:
    """One device with its clocks."""

    device: TimingDevice
    settings: Settings
    clock: PhaseClock
    workers: dict[str, dict[tuple[str, ...], Spent]]
    """By worker's folder, the newest times of each."""

    def worker_spent(self) -> dict[tuple[str, ...], Spent]:
        """Return the phases of all workers so far."""
        total: dict[tuple[str, ...], Spent] = {}
        for spent in self.workers.values():
            for path, one in spent.items():
                total[path] = total.get(path, Spent()) + one
        return total

    def states(self) -> tuple[dict[tuple[str, ...], Spent], dict[tuple[str, ...], Spent]]:
        """Return what kopt and its workers have spent so far."""
        return self.clock.spent(), self.worker_spent()


def install() -> tuple[PhaseClock, dict[str, dict[tuple[str, ...], Spent]]]:
    """Put clocks around kopt's functions, and the timed engine into workers."""
    clock = PhaseClock()
    workers: dict[str, dict[tuple[str, ...], Spent]] = {}
    clock.wrap(TARGETS)
    gpu_opening.ENGINE = "timed_engine:TimedEngine"
    asked = WorkerProcess.ask

    def ask_and_read(self: WorkerProcess, request: Request, timeout_s: float) -> Answer | WorkerEnd:
        answer = asked(self, request, timeout_s)
        with suppress(OSError):
            entries = json.loads((self.folder / TIMES_FILE).read_text("utf-8"))
            workers[str(self.folder)] = {tuple(path): Spent(s, n) for path, s, n in entries}
        return answer

    WorkerProcess.ask = ask_and_read  # type: ignore[method-assign]
    clock.wrap_named(WorkerProcess, "ask", _kind_of)
    clock.wrap(("kopt.tools.gpu.worker_process:WorkerProcess.start",))
    return clock, workers


def _kind_of(worker: WorkerProcess, request: Request, timeout_s: float) -> str:
    del worker, timeout_s
    return f"ask {request.kind}"


def evaluate(bench: Bench, pair: str, times: int) -> None:
    """Evaluate a source `times` times and print the phases."""
    file, kernel = _file_of(pair)
    problem, _ = find_kernel(kernel, None)
    source = file.read_text("utf-8")
    artifacts = open_artifacts(bench.settings.home)
    site = EvaluationSite(bench.device, bench.device, bench.settings, artifacts)
    walls: list[float] = []
    states = [bench.states()]
    for number in range(times):
        job = EvaluationJob(
            id=f"run-phases/{number}/quick",
            kernel=kernel,
            source=f"{source}\n// {time.time_ns()}\n",
            source_name=file.name,
            tune={},
            level="quick",
            arch=bench.device.facts.arch,
        )
        began = time.perf_counter()
        found = evaluate_job(job, replace(site, measured=type(site.measured)()))
        walls.append(time.perf_counter() - began)
        states.append(bench.states())
        if not number:
            print(f"\n## {kernel}, {file.name}: {found.status}: {found.summary}", flush=True)
    rest = walls[1:]
    print(f"first {walls[0]:.2f} s; then {' '.join(f'{wall:.2f}' for wall in rest)}", flush=True)
    _print("first evaluation", states[0], states[1], 1.0)
    if rest:
        _print(f"mean of {len(rest)} more", states[1], states[-1], 1 / len(rest))
    for compiler in ("nvcc", "nvrtc"):
        began = time.perf_counter()
        fresh = Candidate(f"{source}\n// {time.time_ns()} {compiler}\n", file.name)
        workload = find_kernel(kernel, None)[1]
        request = CompileRequest(
            Case(problem, workload, fresh), archs=(bench.device.facts.arch,), compiler=compiler
        )
        compile_candidate(request, bench.settings)
        print(f"{compiler}: {time.perf_counter() - began:.2f} s", flush=True)


def promote(bench: Bench, pair: str, scratch: Path) -> None:
    """Promote a source and print the phases; its files go to a scratch folder."""
    file, kernel = _file_of(pair)
    problem, _ = find_kernel(kernel, None)
    request = PromotionRequest(
        Case(problem, problem.workloads[0], read_candidate(file)), winners=scratch / "winners"
    )
    opening = cast(
        "partial[AbstractContextManager[TimingDevice]]",
        partial(open_device, bench.device.name, bench.settings, has_spare=False),
    )
    before = bench.states()
    began = time.perf_counter()
    found = promote_candidate(request, opening, bench.settings)
    wall_s = time.perf_counter() - began
    print(f"\n## promotion of {problem.name}, {file.name}: {found.outcome} in {wall_s:.1f} s")
    for reason in found.reasons:
        print(f"   {reason}")
    _print("promotion", before, bench.states(), 1.0)


_State = tuple[dict[tuple[str, ...], Spent], dict[tuple[str, ...], Spent]]


def _print(title: str, before: _State, after: _State, share: float) -> None:
    for where, one, two in zip(("kopt", "worker"), before, after, strict=True):
        print(f"-- {title}, in the {where}" if where == "worker" else f"-- {title}, in {where}")
        print("\n".join(table(since(two, one), share, _LEAST_S)), flush=True)


def _file_of(pair: str) -> tuple[Path, str]:
    file, _, kernel = pair.rpartition("=")
    problem, _ = find_kernel(kernel, None)
    return (Path(file) if file else problem.folder / "reference.cu"), kernel


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Say where the time of evaluations goes.")
    parser.add_argument("kernels", nargs="*", default=list(KERNELS), metavar="[FILE=]KERNEL")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--evaluations", type=int, default=4)
    parser.add_argument("--promote", action="store_true", help="also promote each source")
    parser.add_argument("--home", type=Path, help="KOPT_HOME to use and to keep")
    options = parser.parse_args()
    if not sys.flags.safe_path:
        parser.error("run it with `PYTHONPATH=benchmarks/phases python -P`")
    clock, workers = install()
    with tempfile.TemporaryDirectory(prefix="kopt-phases-") as scratch:
        home = options.home or Path(scratch) / "home"
        settings = replace(settings_from_environment(), home=home.absolute(), gpu_idle_s=0.0)
        with open_device(options.device, settings) as device:
            bench = Bench(cast(TimingDevice, device), settings, clock, workers)
            for pair in options.kernels:
                evaluate(bench, pair, options.evaluations)
        if options.promote:
            for pair in options.kernels:
                promote(bench, pair, Path(scratch))


if __name__ == "__main__":
    main()
