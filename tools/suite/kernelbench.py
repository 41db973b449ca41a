"""KernelBench's own files, scored: `eval_results.json` and a JSON file of baseline times.

What a file says is taken as it is: correctness and times are those of KernelBench's own check.
Tasks are paired with baselines by the number that begins a problem's name. KernelBench's analysis
pairs them by their order in the two files, which is the same where both are in that order.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from kopt.config.errors import ToolError

from .score import ScoredTask, Scoring, score_groups
from .suite_score import SuiteScore, fast_curve

_SAMPLE = 0
"""Of several samples of a task KernelBench's analysis takes this one."""


class KernelBenchEvaluation(BaseModel):
    """One sample of `eval_results.json`; keys that scores do not need are left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sample_id: int = _SAMPLE
    compiled: bool = False
    correctness: bool = False
    runtime: float = -1.0
    """Mean time, in the unit of the baseline; not positive where nothing was timed."""
    ref_runtime: float = -1.0
    """The baseline's, where it was timed with the sample."""


@dataclass(frozen=True)
class KernelBenchFiles:
    """What is scored."""

    evaluations: Path
    baseline: Path | None
    level: str | None
    """Which level of the baseline's file; needed only if it has several."""


def score_kernelbench(
    files: KernelBenchFiles, thresholds: tuple[float, ...], seed: int
) -> SuiteScore:
    """Return the score of a file; every task of the baseline's level counts, evaluated or not.

    Raises:
        ToolError: A file is none of KernelBench's, or the two do not belong together.
    """
    found = read_evaluations(files.evaluations)
    if files.baseline is None:
        group, names = files.level or "all", {number: str(number) for number in found}
        times = {number: one.ref_runtime for number, one in found.items()}
    else:
        group, names, times = _read_baseline(files.baseline, files.level)
        if strange := sorted(set(found) - set(names)):
            raise ToolError(
                f"{files.evaluations} has task {strange[0]}, {group} of {files.baseline} has none:"
                " name the level that was evaluated, --group level1"
            )
    tasks = [
        _scored(names[number], group, found.get(number), times[number]) for number in sorted(names)
    ]
    has_speeds = any(one.speedup is not None for one in tasks)
    why = "" if has_speeds or not any(one.is_valid for one in tasks) else _WITHOUT_TIMES
    scoring = Scoring(thresholds, seed, has_speeds=not why, has_intervals=False)
    return SuiteScore(
        suite=files.evaluations.name,
        source="kernelbench",
        over=files.baseline.name if files.baseline else "ref_runtime",
        speeds="unavailable" if why else "measured",
        why_unavailable=why,
        set=None,
        seed=seed,
        scores=score_groups(tasks, scoring),
        curve=fast_curve(tasks),
        tasks=tuple(tasks),
        not_run=tuple(names[number] for number in sorted(set(names) - set(found))),
    )


_WITHOUT_TIMES = "no correct task has a baseline's time: name a file of them, --baseline FILE"


def read_evaluations(path: Path) -> dict[int, KernelBenchEvaluation]:
    """Return the sample of each task that KernelBench's analysis takes.

    Both forms are read: a list of samples a task, and the older single one.

    Raises:
        ToolError: The file is none of KernelBench's.
    """
    found: dict[int, KernelBenchEvaluation] = {}
    for key, entry in _read_mapping(path, "eval_results.json").items():
        samples = cast(Sequence[object], entry if isinstance(entry, list) else [entry])
        try:
            number = int(key)
            read = [KernelBenchEvaluation.model_validate(one) for one in samples]
        except (ValueError, ValidationError) as error:
            raise ToolError(
                f"{path}: {key!r} is no task of KernelBench's eval_results.json, a problem's number"
                " with samples of compiled, correctness and runtime"
            ) from error
        chosen = [one for one in read if one.sample_id == _SAMPLE]
        if len(chosen) > 1:
            raise ToolError(f"{path}: task {key} has {len(chosen)} samples with the id {_SAMPLE}")
        found[number] = chosen[0] if chosen else KernelBenchEvaluation()
    return found


def _read_baseline(path: Path, level: str | None) -> tuple[str, dict[int, str], dict[int, float]]:
    """Return the level, and by number the names and mean times of its problems."""
    levels = _read_mapping(path, "baseline times")
    if level is None and len(levels) > 1:
        raise ToolError(
            f"{path} has the times of {', '.join(levels)}: name the one that was evaluated,"
            f" --group {next(iter(levels))}"
        )
    chosen = level or next(iter(levels), "")
    if not isinstance(levels.get(chosen), dict):
        raise ToolError(f"{path} has no level {chosen!r}: {', '.join(levels) or 'it is empty'}")
    names: dict[int, str] = {}
    times: dict[int, float] = {}
    for name, entry in cast(dict[str, Any], levels[chosen]).items():
        number = re.match(r"\d+", name)
        # The time of a program that failed is null.
        mean = 0.0 if entry is None else None
        if isinstance(entry, dict):
            mean = cast(dict[str, Any], entry).get("mean")
        if number is None or not isinstance(mean, int | float):
            raise ToolError(
                f"{path}: {chosen}: {name!r} is no entry of KernelBench's baseline times, a file"
                " name that begins with the problem's number, with its mean"
            )
        names[int(number[0])] = name.removesuffix(".py")
        times[int(number[0])] = float(mean)
    return chosen, names, times


def _read_mapping(path: Path, what: str) -> dict[str, Any]:
    try:
        document: object = json.loads(path.read_bytes())
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{path} is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ToolError(f"{path} is none of KernelBench's {what}: a mapping is expected")
    return cast(dict[str, Any], document)


def _scored(
    name: str, group: str, found: KernelBenchEvaluation | None, baseline: float
) -> ScoredTask:
    if found is None:
        return ScoredTask(task=name, group=group, is_valid=False, status=None, reason="not run")
    if not found.correctness:
        reason = "incorrect" if found.compiled else "does not compile"
        return ScoredTask(task=name, group=group, is_valid=False, status=None, reason=reason)
    is_timed = found.runtime > 0.0 and baseline > 0.0
    return ScoredTask(
        task=name,
        group=group,
        is_valid=True,
        status=None,
        reason="" if is_timed else "not timed",
        speedup=baseline / found.runtime if is_timed else None,
    )
