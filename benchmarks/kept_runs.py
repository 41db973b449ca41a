"""Keep every candidate of a run with its verdict, as text that lies beside the problems.

    kopt runs export RUN --to RUN.jsonl
    .venv/bin/python benchmarks/kept_runs.py RUN.jsonl ...
    .venv/bin/python benchmarks/tried_page.py --write docs/results.md

Takes exports of runs on a GPU and adds their candidates to benchmarks/tried/<problem>.jsonl. A run
that is there already is replaced by what its export says now, so that a second call changes
nothing. Candidates whose evaluation never ended were not tried and are left out; so are runs on
`sim`, whose times are estimates.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log
from pathlib import Path
from typing import Any, get_args

from tried_records import (
    FOLDER,
    Tried,
    TriedCandidate,
    TriedSource,
    code_of,
    merged,
    read_tried,
    write_tried,
)

from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.records.evaluation import (
    BASELINE_LATENCY,
    LATENCY,
    NOISE_FLOOR,
    REGISTERS,
    SPEEDUP,
    SPEEDUP_HIGH,
    SPEEDUP_LOW,
    EvaluationLevel,
)
from kopt.search.records.run_state import RunState
from kopt.tools.bench.intervals import Interval
from kopt.tools.bench.verdict import decide

SCHEMA = "kopt.run-export/1"
_LEVELS: tuple[EvaluationLevel, ...] = get_args(EvaluationLevel)
_DIGITS = 6  # behind the point: more than is measured, so that nobody rounds twice
_Row = dict[str, Any]


@dataclass(frozen=True)
class Export:
    """The lines of one export that matter here."""

    run: RunState
    rows: dict[str, list[_Row]]
    """By `type`."""


def read_export(path: Path) -> Export:
    """Return what `kopt runs export` wrote.

    Raises:
        SystemExit: It is something else.
    """
    rows: dict[str, list[_Row]] = defaultdict(list)
    try:
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            rows[row.pop("type")].append(row)
        (run,) = rows["run"]
        schema = run.pop("schema")
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # lines of any shape
        raise SystemExit(f"{path} is no export of a run: {error}") from error
    if schema != SCHEMA:
        raise SystemExit(f"{path} is {schema}, not {SCHEMA}")
    return Export(RunState.model_validate(run), rows)


def tried_of(export: Export) -> Tried:
    """Return the candidates of a run on a GPU that were evaluated, with their sources."""
    done = [row for row in export.rows["evaluation"] if row["state"] == "done"]
    evaluations: dict[int, list[_Row]] = defaultdict(list)
    for row in sorted(done, key=lambda row: _LEVELS.index(row["level"])):
        evaluations[row["candidate"]].append(row)
    named = [row for row in export.rows["candidate"] if row["seq"] in evaluations]
    candidates = tuple(_candidate(export, row, evaluations[row["seq"]]) for row in named)
    return merged([Tried(tuple(_sources(export, named)), candidates)])


def _sources(export: Export, candidates: Sequence[_Row]) -> Iterator[TriedSource]:
    texts = {row["sha"]: row["source"] for row in export.rows["source"]}
    for sha in {row["source_sha"] for row in candidates}:
        first = next(row for row in export.rows["candidate"] if row["source_sha"] == sha)
        name, note = first["source_name"], first["note"]
        yield TriedSource(sha=sha, name=name, code=code_of(texts[sha]), note=note, text=texts[sha])


def _candidate(export: Export, row: _Row, evaluations: Sequence[_Row]) -> TriedCandidate:
    settings = export.run.settings
    gpu = settings.gpu
    if gpu is None:
        raise ValueError("a run on sim has no measured candidates")
    failed = [one for one in evaluations if one["status"] != Status.PASSED]
    timed = [one for one in evaluations if one["level"] != "again"]  # which checks only
    last = (failed or timed[-1:])[0]
    values = _values(export, last["id"])
    began = datetime.fromtimestamp(export.run.created_us / 1e6, UTC)
    return TriedCandidate(
        kernel=settings.kernel,
        run=export.run.id,
        seq=row["seq"],
        date=f"{began:%Y-%m-%d}",
        device=gpu.name,
        gpu=gpu.uuid,
        driver=gpu.driver_version,
        cuda=gpu.cuda_version,
        arch=settings.arch,
        source=row["source_sha"],
        tune=row["tune"],
        family=row["family"],
        proposer=row["proposer"],
        techniques=tuple(row["techniques"]),
        level=last["level"],
        status=last["status"],
        summary=last["summary"],
        **_speed(values),
        **_resources(values),
    )


def _values(export: Export, evaluation: int) -> dict[str, _Row]:
    """Return the numbers of the kernel's own workload, by metric."""
    kernel = export.run.settings.kernel
    return {
        row["metric"]: row
        for row in export.rows["measurement"]
        if row["evaluation"] == evaluation and kernel.endswith(f"_{row['workload']}")
    }


def _speed(values: dict[str, _Row]) -> dict[str, Any]:
    if SPEEDUP not in values:
        return {}
    number = {metric: row["value"] for metric, row in values.items()}
    speedup, low, high = (number[one] for one in (SPEEDUP, SPEEDUP_LOW, SPEEDUP_HIGH))
    interval = Interval(log(speedup), log(low), log(high))
    return {
        "baseline": values[SPEEDUP]["unit"],
        "speedup": round(speedup, _DIGITS),
        "interval": (round(low, _DIGITS), round(high, _DIGITS)),
        "verdict": decide(interval, number[NOISE_FLOOR]) or Verdict.INCONCLUSIVE,
        "provenance": Provenance(values[SPEEDUP]["provenance"]),
        "kernel_us": round(number[LATENCY], _DIGITS),
        "baseline_us": round(number[BASELINE_LATENCY], _DIGITS),
    }


def _resources(values: dict[str, _Row]) -> dict[str, Any]:
    names = {"registers": REGISTERS, "spill_bytes": "spills"}
    return {name: int(values[one]["value"]) for name, one in names.items() if one in values}


def keep(exports: Sequence[Path], folder: Path) -> Iterator[str]:
    """Add the candidates of runs to the records in `folder`; yield what came in."""
    by_problem: dict[str, list[Tried]] = defaultdict(list)
    for path in exports:
        export = read_export(path)
        if export.run.settings.gpu is None:
            yield f"{path}: a run on sim, left out"
            continue
        problem, _ = find_kernel(export.run.settings.kernel)
        by_problem[problem.name].append(tried_of(export))
    folder.mkdir(parents=True, exist_ok=True)
    for name, parts in sorted(by_problem.items()):
        path = folder / f"{name}.jsonl"
        before = read_tried(path)
        after = merged([before, *parts])
        write_tried(path, after)
        new = len(after.candidates) - len(before.candidates)
        yield f"{path}: {len(after.candidates)} candidates, {new} of them new"


def main() -> None:
    """Read, merge, write; say what came in."""
    parser = argparse.ArgumentParser(description="Keep the candidates of runs with their verdicts.")
    parser.add_argument("exports", type=Path, nargs="+", help="of kopt runs export")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder of the records")
    options = parser.parse_args()
    for line in keep(options.exports, options.to):
        print(line)


if __name__ == "__main__":
    main()
