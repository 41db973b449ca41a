"""A check as facts: passed and how thoroughly, or the first thing that is wrong."""

from collections.abc import Iterator

from kopt.kernels.check_result import CheckResult, Mismatch, TensorAccuracy, WorkloadCheck
from kopt.kernels.sanitizer_result import SanitizerRun
from kopt.kernels.status import Status

from .compile_facts import build_facts, function_rows, remark_facts
from .findings import advice, diagnostic_facts, head
from .fitting import Detail, Facts, Listing
from .wording import Quoted

SIM_NOTE = "run on the CPU simulator: values, races and bounds are judged, speed is not"


def check_facts(result: CheckResult, detail: Detail) -> Facts:
    """Return the facts of a check."""
    facts = head(result, result.values_at())
    facts |= {"level": result.level, "device": result.device}
    if result.device == "sim" and result.status is Status.PASSED:
        facts["device_note"] = SIM_NOTE
    facts |= wrong_facts(result)
    facts |= advice(result)
    if result.workloads:
        facts["executed"] = Listing(tuple(map(_workload_words, result.workloads)), most=8)
    if result.accuracy:
        rows = tuple(map(_accuracy_row, result.accuracy))
        facts["computed"] = {"accuracy": Listing(rows)}
    if result.cpu_bodies:
        facts["stood_in_by_cpu_code"] = Listing(result.cpu_bodies, most=12)
    if result.sanitizer is not None:
        facts["sanitizer"] = Listing(tuple(map(_sanitizer_words, result.sanitizer.runs)))
    facts |= remark_facts(result.compiled)
    if detail == "full":
        facts |= _full_facts(result)
    return facts


def wrong_facts(result: CheckResult) -> Facts:
    """Return what is wrong: the first mismatch, then the diagnostics."""
    facts: Facts = {}
    if result.mismatch is not None:
        facts["first_mismatch"] = _mismatch(result.mismatch)
    found = result.diagnostics
    if result.sanitizer is not None:
        found += tuple(one for run in result.sanitizer.runs for one in run.findings)
    return facts | diagnostic_facts(found)


def _mismatch(found: Mismatch) -> Facts:
    return {
        "tensor": found.tensor,
        "row": found.row,
        "column": found.column,
        "index": list(found.index),
        "expected": found.expected,
        "got": found.got,
        "pattern": found.pattern,
        "wrong_elements": found.wrong_elements,
        "total_elements": found.total_elements,
        "gate": found.gate,
        "workload": found.workload,
        "inputs": f"{found.regime}, {'a hidden seed' if found.seed is None else _seed(found.seed)}",
        "provenance": "computed",
    }


def _seed(seed: int) -> str:
    return f"seed {seed}"


def _workload_words(entry: WorkloadCheck) -> str:
    counts = {
        "seed": entry.visible_seeds,
        "hidden seed": entry.hidden_seeds,
        "schedule": entry.schedules,
        "run": entry.executions,
    }
    parts = (f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items() if count)
    return f"{entry.workload} {entry.status.value}: {', '.join(parts) or 'not run'}"


def _accuracy_row(entry: TensorAccuracy) -> Facts:
    row: Facts = {
        "tensor": entry.tensor,
        "differing_fraction": entry.mismatch_fraction,
        "max_abs": entry.max_abs,
        "max_rel": entry.max_rel,
    }
    if entry.l2_ratio is not None:
        row["l2_ratio"] = entry.l2_ratio
    return row


def _sanitizer_words(run: SanitizerRun) -> str:
    reason = "" if run.reason is None else f": {run.reason}"
    return f"{run.tool} {run.outcome}{reason}"


def _full_facts(result: CheckResult) -> Facts:
    facts: Facts = {
        "sandbox": result.sandbox or "none",
        "measured": {"elapsed_s": result.elapsed_s},
    }
    counted = tuple(_counter_rows(result))
    functions = tuple(function_rows(result.compiled))
    facts["compiled"] = {"provenance": "computed", "functions": Listing(functions)}
    facts["counted"] = {"provenance": "computed", "traffic": Listing(counted)}
    return facts | build_facts(result.compiled)


def _counter_rows(result: CheckResult) -> Iterator[Facts]:
    counters = result.counters
    for name, traffic in () if counters is None else counters.traffic.items():
        yield {
            "buffer": Quoted(name),
            "load_bytes": traffic.load_bytes,
            "store_bytes": traffic.store_bytes,
        }
