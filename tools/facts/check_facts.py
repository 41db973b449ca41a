"""A check as facts: passed and how thoroughly, or the first thing that is wrong."""

from collections.abc import Iterator

from kopt.config.counted import counted
from kopt.config.device_names import is_simulated
from kopt.kernels.check_result import (
    CheckResult,
    Mismatch,
    SanitizerRun,
    TensorAccuracy,
    WorkloadCheck,
)
from kopt.kernels.status import Status

from .compile_facts import build_facts, function_rows, remark_facts
from .findings import advice, diagnostic_facts, head
from .fitting import Detail, Facts, Listing, given
from .wording import Quoted, plain_beginning

SIM_NOTE = "run on the CPU simulator: values, races and bounds are judged, speed is not"
_SUMMARY_CHARACTERS = 600
_MOST_LINES = 20
_MISMATCH_FIELDS = (
    *("tensor", "row", "column", "index", "expected", "got", "pattern"),
    *("wrong_elements", "total_elements", "gate", "workload"),
)
"""The fields of a mismatch in the order of what fixes it."""


def check_facts(result: CheckResult, detail: Detail) -> Facts:
    """Return the facts of a check."""
    facts = head(result, result.values_at())
    facts |= {"level": result.level, "device": result.device}
    if is_simulated(result.device) and result.status is Status.PASSED:
        facts["device_note"] = SIM_NOTE
    facts |= wrong_facts(result) | advice(result)
    accuracy = Listing(tuple(map(_accuracy_row, result.accuracy)))
    sanitized = () if result.sanitizer is None else result.sanitizer.runs
    facts |= given(
        race_check=result.race_check and result.race_check.words,
        executed=Listing(tuple(map(_workload_words, result.workloads)), most=8),
        drawn_shapes=hidden_shape_words(result, names=detail == "full"),
        passed_over=passed_over_words(result),
        judged_rows=judged_rows_words(result),
        regimes_left_out=regime_words(result),
        fixed_scalars=fixed_scalar_words(result),
        not_run=unexecuted_words(result),
        computed=given(accuracy=accuracy),
        stood_in_by_cpu_code=Listing(result.cpu_bodies, most=12),
        sanitizer=Listing(tuple(map(sanitizer_words, sanitized))),
    )
    facts |= remark_facts(result.compiled)
    return facts | _full_facts(result) if detail == "full" else facts


def check_summary(result: CheckResult) -> str:
    """Return the outcome in a line: what agreed, or the first thing that is wrong."""
    if result.status is Status.PASSED:
        executions = sum(one.executions for one in result.workloads)
        missing, idle = result.compiled.left_out, len(result.compiled.unserved)
        remark = f"; {', '.join(missing)} left out: no plan there" if missing else ""
        remark += f"; {idle} of its variants taken by no workload, so unchecked" if idle else ""
        shapes = counted(len(result.workloads), "workload")
        if result.hidden_shapes:
            shapes += ", and of drawn shapes,"
        if result.passed_over:
            remark += f"; {', '.join(result.passed_over)} not run: a GPU checks it"
        return f"{executions} executions of {shapes} agree with the oracle{remark}"
    if result.mismatch is not None:
        found = result.mismatch
        return f"{found.workload}: {element_words(found)} ({found.pattern})"
    for diagnostic in result.diagnostics:
        if diagnostic.severity == "error":
            place = "" if diagnostic.line is None else f"line {diagnostic.line}: "
            return plain_beginning(f"{place}{diagnostic.message}", _SUMMARY_CHARACTERS)
    return result.status.value


def hidden_shape_words(result: CheckResult, *, names: bool = True) -> str | None:
    """Return the shapes besides the named workloads that a full check ran, one line.

    None at level quick, and where the check ended before them. With `names` of every shape: they
    differ from check to check, so that a recorded prompt does without.
    """
    if result.hidden_shapes:
        drawn = "drawn after the build among those that `where` claims"
        listed = ", ".join(one.workload for one in result.hidden_shapes)
        return f"{listed}, {drawn}" if names else drawn
    if result.level == "full" and result.status is Status.PASSED:
        return "none: the header claims, or its builds serve, the named workloads alone"
    return None


def passed_over_words(result: CheckResult) -> str | None:
    """Return the workloads that were not run because only a GPU runs them, one line."""
    if not result.passed_over:
        return None
    names = ", ".join(result.passed_over)
    return f"{names}: `use: time`, so compiled and not run on {result.device}; a GPU checks it"


def judged_rows_words(result: CheckResult) -> str | None:
    """Return at which workloads some rows stand for all, one line; None if all are judged."""
    found = [one for one in result.workloads if one.judged_rows is not None]
    if not found:
        return None
    counts = ", ".join(f"{one.judged_rows} rows of {one.workload}" for one in found)
    return f"{counts} in each case, the first, the last and others of its seed; none may have NaN"


def regime_words(result: CheckResult) -> str | None:
    """Return the kinds of inputs that a full check had none of, one line; None if it had all."""
    if not result.regimes_left_out:
        return None
    return f"no inputs of {', '.join(result.regimes_left_out)}: the problem does not draw them"


def fixed_scalar_words(result: CheckResult) -> str | None:
    """Return that no launch takes some scalars, one line; None if one takes each."""
    if result.status is not Status.PASSED or not result.fixed_scalars:
        return None
    names = ", ".join(result.fixed_scalars)
    return f"{names}: no launch takes it, so only the problem's value is right"


def unexecuted_words(result: CheckResult) -> str | None:
    """Return the lines of which a full check knows nothing, since no case got there; None if none.

    Code that only a GPU runs stands in such lines: what tells the simulator from one.
    """
    if result.status is not Status.PASSED or result.level != "full":
        return None
    lines = result.unexecuted_lines
    if not lines:
        return None
    named = ", ".join(map(str, lines[:_MOST_LINES])) + (", ..." if len(lines) > _MOST_LINES else "")
    places = f"{counted(len(lines), 'line')} ({named})"
    if result.race_check is not None:
        return f"the race check made no load or store of {places}: no races were looked for there"
    return f"no case makes a load or store of {places}: unchecked there"


def element_words(found: Mismatch) -> str:
    """Return the first wrong element: `out[3, 17] is 1.5, expected 1.25`; of hidden inputs none.

    Of a row without a right answer (Mismatch.index) it is the row alone.
    """
    if found.index is None and found.row is not None:
        return f"{found.tensor} has {found.got} in row {found.row}"
    if found.index is None:
        return f"{found.tensor} is wrong on hidden inputs ({found.regime}, gate {found.gate})"
    return f"{found.tensor}{list(found.index)} is {found.got}, expected {found.expected}"


def inputs_words(found: Mismatch) -> str:
    """Return the inputs of a mismatch: their regime, and the seed unless it is hidden."""
    return f"{found.regime}, {'a hidden seed' if found.seed is None else f'seed {found.seed}'}"


def sanitizer_words(run: SanitizerRun) -> str:
    """Return what a tool of compute-sanitizer came to, and why it could not judge."""
    return f"{run.tool} {run.outcome}" + ("" if run.reason is None else f": {run.reason}")


def wrong_facts(result: CheckResult) -> Facts:
    """Return what is wrong: the first mismatch, then the diagnostics."""
    facts: Facts = {}
    if result.mismatch is not None:
        found = result.mismatch
        fields = found.model_dump(mode="json")
        told = given(**{name: fields[name] for name in _MISMATCH_FIELDS})
        facts["first_mismatch"] = told | {
            "inputs": inputs_words(found),
            "provenance": "computed",
        }
    diagnostics = result.diagnostics
    if result.sanitizer is not None:
        diagnostics += tuple(one for run in result.sanitizer.runs for one in run.findings)
    return facts | diagnostic_facts(diagnostics)


def _workload_words(entry: WorkloadCheck) -> str:
    counts = {
        "seed": entry.visible_seeds,
        "hidden seed": entry.hidden_seeds,
        "schedule": entry.schedules,
        "run": entry.executions,
    }
    parts = (counted(count, name) for name, count in counts.items() if count)
    return f"{entry.workload} {entry.status.value}: {', '.join(parts) or 'not run'}"


def _accuracy_row(entry: TensorAccuracy) -> Facts:
    return given(
        tensor=entry.tensor,
        differing_fraction=entry.mismatch_fraction,
        max_abs=entry.max_abs,
        max_rel=entry.max_rel,
        l2_ratio=entry.l2_ratio,
        worst_on=_worst_words(entry),
    )


_NUMBERS = {"mismatch_fraction": "differing_fraction"}


def _worst_words(entry: TensorAccuracy) -> str:
    """Return the inputs that the worst numbers are of, each once with its numbers."""
    by_inputs: dict[str, list[str]] = {}
    for name, inputs in entry.worst_on.items():
        by_inputs.setdefault(inputs, []).append(_NUMBERS.get(name, name))
    if len(by_inputs) == 1:
        return next(iter(by_inputs))
    return "; ".join(f"{', '.join(names)}: {inputs}" for inputs, names in by_inputs.items())


def _full_facts(result: CheckResult) -> Facts:
    functions = tuple(function_rows(result.compiled))
    return {
        "sandbox": result.sandbox or "none",
        "measured": {"elapsed_s": result.elapsed_s},
        "compiled": {"provenance": "computed", "functions": Listing(functions)},
        "counted": {"provenance": "computed", "traffic": Listing(tuple(_counter_rows(result)))},
        **build_facts(result.compiled),
    }


def _counter_rows(result: CheckResult) -> Iterator[Facts]:
    counters = result.counters
    for name, traffic in () if counters is None else counters.traffic.items():
        yield {
            "buffer": Quoted(name),
            "load_bytes": traffic.load_bytes,
            "store_bytes": traffic.store_bytes,
        }
