"""KernelBench's files: scores equal values computed by hand and, with a checkout, its own."""

import json
import os
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.errors import ToolError
from kopt.tools.suite.kernelbench import KernelBenchFiles, score_kernelbench
from kopt.tools.suite.suite_score import SuiteScore

P = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
_CHECKOUT = os.environ.get("KERNELBENCH")


def _sample(runtime: float, *, correct: bool = True, **more: object) -> dict[str, object]:
    """Return one sample as eval_from_generations.py writes it."""
    return {
        "sample_id": 0,
        "compiled": True,
        "correctness": correct,
        "metadata": {"hardware": "NVIDIA H100", "device": "0"},
        "runtime": runtime if correct else -1.0,
        "runtime_stats": {"mean": runtime, "std": 0.01, "min": 1, "max": 2, "num_trials": 100},
        **more,
    }


EVALUATIONS: dict[str, Any] = {
    "1": [_sample(2.0)],
    "3": [_sample(1.0, correct=False)],
    "2": [_sample(5.0, sample_id=1), _sample(4.0)],
    "10": [_sample(3.0)],
}
BASELINE: dict[str, Any] = {
    "level1": {
        "10_Matmul.py": {"mean": 3.0, "std": 0.1, "min": 2.9, "max": 3.2, "num_trials": 100},
        "1_Square_matmul.py": {"mean": 8.0, "std": 0.1, "min": 7.9, "max": 8.2, "num_trials": 100},
        "2_Standard_matmul.py": {"mean": 2.0, "std": 0.0, "min": 2, "max": 2, "num_trials": 100},
        "3_Batched_matmul.py": {"mean": 1.0, "std": 0.0, "min": 1, "max": 1, "num_trials": 100},
        "4_Matvec.py": {"mean": 7.0, "std": 0.0, "min": 7, "max": 7, "num_trials": 100},
    },
}

Files = Callable[..., KernelBenchFiles]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Return a function that writes both files."""

    def write(
        evaluations: object = EVALUATIONS, baseline: object = BASELINE, level: str | None = None
    ) -> KernelBenchFiles:
        evaluated, times = tmp_path / "eval_results.json", tmp_path / "torch.json"
        evaluated.write_text(json.dumps(evaluations))
        times.write_text(json.dumps(baseline))
        return KernelBenchFiles(evaluated, times if baseline else None, level)

    return write


def _fast(score: SuiteScore) -> list[float | None]:
    return [one.by_estimate.value for one in score.scores[0].fast]


def test_scores_are_those_computed_by_hand(files: Files) -> None:
    score = score_kernelbench(files(), P, seed=0)
    whole = score.scores[0]
    # Speedups 8/2, 2/4, 3/3; the third task is wrong, the fourth was never evaluated.
    assert (whole.tasks, whole.valid) == (5, 3)
    assert _fast(score) == pytest.approx([3 / 5, 2 / 5, 2 / 5, 1 / 5, 1 / 5, 1 / 5])
    assert whole.geomean.value == pytest.approx(2.0 ** (1 / 3))
    assert whole.geomean_above_1x.value == pytest.approx(4.0)
    assert score.not_run == ("4_Matvec",)
    assert (score.source, score.over, score.tasks[0].group) == (
        "kernelbench",
        "torch.json",
        "level1",
    )
    assert whole.fast[0].by_interval.value is None  # its files have no intervals


def test_tasks_are_paired_by_their_number_whatever_the_order_of_the_files(files: Files) -> None:
    backwards = {"level1": dict(reversed(BASELINE["level1"].items()))}
    found = score_kernelbench(files(baseline=backwards), P, seed=0)
    assert found.scores == score_kernelbench(files(), P, seed=0).scores


def test_the_older_form_with_one_sample_a_task_is_read(files: Files) -> None:
    older = {"1": EVALUATIONS["1"][0], "2": EVALUATIONS["2"][1]}
    score = score_kernelbench(files(older), P, seed=0)
    assert score.scores[0].geomean.value == pytest.approx(sqrt(4.0 * 0.5))


def test_without_a_baseline_file_the_reference_times_beside_the_samples_count(files: Files) -> None:
    beside = {"1": [_sample(2.0, ref_runtime=3.0)], "2": [_sample(1.0, correct=False)]}
    score = score_kernelbench(files(beside, None), (1.0,), seed=0)
    assert (_fast(score), score.scores[0].tasks) == ([0.5], 2)


def test_without_any_baseline_speedups_are_unavailable_and_validity_is_not(files: Files) -> None:
    score = score_kernelbench(files(baseline=None), (1.0,), seed=0)
    assert (_fast(score), score.speeds) == ([None], "unavailable")
    assert score.scores[0].valid_rate.value == pytest.approx(3 / 4)
    assert "--baseline FILE" in score.why_unavailable


def test_a_baseline_that_failed_leaves_its_task_valid_without_a_speed(files: Files) -> None:
    failed = {"level1": {**BASELINE["level1"], "1_Square_matmul.py": None}}
    score = score_kernelbench(files(baseline=failed), (1.0,), seed=0)
    assert (score.scores[0].valid, score.scores[0].timed) == (3, 2)


@pytest.mark.parametrize(
    ("evaluations", "baseline", "level", "message"),
    [
        ([], BASELINE, None, "a mapping is expected"),
        ({"one": []}, BASELINE, None, "'one' is no task of KernelBench's eval_results.json"),
        ({"1": [{"runtime": "fast"}]}, BASELINE, None, "'1' is no task"),
        ({"1": [_sample(1.0), _sample(2.0)]}, BASELINE, None, "2 samples with the id 0"),
        ({"77": []}, BASELINE, None, "level1 of .* has none: name the level"),
        (EVALUATIONS, {**BASELINE, "level2": {}}, None, "the times of level1, level2: name"),
        (EVALUATIONS, BASELINE, "level3", "no level 'level3': level1"),
        (EVALUATIONS, {"level1": {"matmul.py": {"mean": 1}}}, None, "begins with the problem's"),
        (EVALUATIONS, {"level1": {"1_a.py": {"min": 1}}}, None, "with its mean"),
    ],
)
def test_files_that_do_not_fit_are_refused_with_what_was_expected(
    files: Files, evaluations: object, baseline: object, level: str | None, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        score_kernelbench(files(evaluations, baseline, level), P, seed=0)


def test_broken_json_and_missing_files_are_mistakes_of_the_call(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot read"):
        score_kernelbench(KernelBenchFiles(tmp_path / "none.json", None, None), P, seed=0)
    (tmp_path / "half.json").write_text('{"1": [')
    with pytest.raises(ToolError, match="is no JSON"):
        score_kernelbench(KernelBenchFiles(tmp_path / "half.json", None, None), P, seed=0)


@pytest.mark.skipif(
    _CHECKOUT is None,
    reason="KERNELBENCH names no checkout of KernelBench, whose own functions this test calls",
)
@pytest.mark.parametrize("seed", range(5))
def test_scores_equal_those_of_kernelbench_own_functions(files: Files, seed: int) -> None:
    own = _own_functions(Path(_CHECKOUT or ""))
    random = np.random.default_rng(seed)
    count = 100
    correct = random.random(count) < 0.7
    runtime, mean = random.lognormal(0, 1, (2, count)).round(3)
    mean[:5] = runtime[:5]  # ties with p = 1
    evaluations = {
        str(n + 1): [_sample(runtime[n], correct=bool(correct[n]))] for n in range(count)
    }
    baseline = {"level1": {f"{n + 1}_Task.py": {"mean": mean[n]} for n in range(count)}}
    score = score_kernelbench(files(evaluations, baseline), P, seed=0)
    asked = (correct, mean, np.where(correct, runtime, -1.0), count)
    assert _fast(score) == pytest.approx([own.fastp(*asked, p) for p in P])
    whole = score.scores[0]
    assert whole.geomean.value == pytest.approx(own.geometric_mean_speed_ratio_correct_only(*asked))
    assert whole.geomean_above_1x.value == pytest.approx(
        own.geometric_mean_speed_ratio_correct_and_faster_only(*asked)
    )


def _own_functions(checkout: Path) -> Any:
    """Return the module score.py of a checkout, which imports nothing but numpy."""
    path = checkout / "src" / "kernelbench" / "score.py"
    spec = spec_from_file_location("kernelbench_score", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
