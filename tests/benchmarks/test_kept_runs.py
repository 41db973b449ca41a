"""Runs become records of what was tried: each evaluated candidate, and of the machine its GPU."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kept_runs import keep
from tried_records import Tried, read_tried

from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.records.evaluation import (
    BASELINE_LATENCY,
    NOISE_FLOOR,
    Evaluation,
    EvaluationJob,
    MetricValue,
)
from kopt.search.reports.files import export_lines
from kopt.search.rounds.advance import run_search
from support.bench_results import H100
from support.populations import failed, timed
from support.scripted_runs import new_store, search

KERNEL, WORKLOAD = "silu_and_mul_b8xh14336", "b8xh14336"
SPEEDUPS = {64: 0.9, 128: 1.0, 256: 1.25}
"""By BLOCK; ROWS 4 with BLOCK 64 is wrong."""


def answer(job: EvaluationJob) -> Evaluation:
    if job.tune == {"BLOCK": 64, "ROWS": 4}:
        return failed()
    speedup = SPEEDUPS[job.tune["BLOCK"]]
    evaluation = timed(4.0 / speedup, speedup, WORKLOAD, half_width=0.001)
    more = tuple(
        MetricValue(workload=WORKLOAD, metric=metric, unit=unit, provenance=provenance, value=value)
        for metric, unit, provenance, value in (
            (BASELINE_LATENCY, "us", Provenance.MEASURED, 4.0),
            (NOISE_FLOOR, "1", Provenance.MEASURED, 0.003),
        )
    )
    return evaluation.model_copy(update={"values": (*evaluation.values, *more)})


@pytest.fixture(scope="module")
def whole_export(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the export of a finished run on a GPU."""
    home = tmp_path_factory.mktemp("home")
    with new_store(home, kernel=KERNEL, device="cuda:0", gpu=H100) as store:
        run_search(search(store, answer))
        return "\n".join(export_lines(store.reader, store.folder))


@pytest.fixture
def export(whole_export: str, tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(whole_export, "utf-8")
    return path


def rewrite(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Put what `change` makes of each line into its place."""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    path.write_text("\n".join(json.dumps(change(row)) for row in rows), "utf-8")


def kept(path: Path, folder: Path) -> Tried:
    list(keep([path], folder))
    return read_tried(folder / "silu_and_mul.jsonl")


def test_every_evaluated_candidate_is_kept_with_its_verdict(export: Path, tmp_path: Path) -> None:
    candidates = kept(export, tmp_path).candidates
    assert len(candidates) == 9
    wrong = next(one for one in candidates if one.tune == {"BLOCK": 64, "ROWS": 4})
    assert (wrong.status, wrong.verdict, wrong.speedup) == (Status.INCORRECT, None, None)
    verdicts = {one.tune["BLOCK"]: one.verdict for one in candidates if one is not wrong}
    assert verdicts == {64: Verdict.SLOWER, 128: Verdict.INCONCLUSIVE, 256: Verdict.FASTER}


def test_a_candidate_has_ratio_times_and_where_they_come_from(export: Path, tmp_path: Path) -> None:
    candidates = kept(export, tmp_path).candidates
    best = next(one for one in candidates if one.verdict is Verdict.FASTER)
    assert (best.speedup, best.interval, best.baseline) == (
        1.25,
        (1.249, 1.251),
        "flashinfer (PDL on)",
    )
    assert (best.kernel_us, best.baseline_us, best.registers) == (3.2, 4.0, 32)
    assert best.provenance is Provenance.MEASURED
    assert (best.device, best.gpu, best.driver) == (H100.name, H100.uuid, H100.driver_version)


def test_a_source_is_kept_once_and_the_gpu_alone_names_the_machine(
    export: Path, tmp_path: Path
) -> None:
    tried = kept(export, tmp_path)
    assert [one.source for one in tried.candidates] == [tried.sources[0].sha] * 9
    text = (tmp_path / "silu_and_mul.jsonl").read_text("utf-8")
    assert text.count(H100.uuid) == text.count(f'"gpu":"{H100.uuid}"') == 9
    assert str(tmp_path) not in text


def test_a_second_call_changes_nothing(export: Path, tmp_path: Path) -> None:
    file = tmp_path / "silu_and_mul.jsonl"
    kept(export, tmp_path)
    before = file.read_bytes()
    assert list(keep([export, export], tmp_path)) == [f"{file}: 9 candidates, 0 of them new"]
    assert file.read_bytes() == before


@pytest.mark.parametrize("status", [Status.DATA_RACE, Status.PASSED])
def test_a_full_check_without_a_time_takes_the_ratio_away(
    export: Path, tmp_path: Path, status: Status
) -> None:
    rows = [json.loads(line) for line in export.read_text("utf-8").splitlines()]
    (full,) = (row for row in rows if row.get("level") == "full")
    full |= {"status": status, "summary": "impossible, or a race"}
    left = [row for row in rows if row.get("evaluation") != full["id"]]
    export.write_text("\n".join(map(json.dumps, left)), "utf-8")
    (checked,) = (one for one in kept(export, tmp_path).candidates if one.level == "full")
    assert (checked.status, checked.summary) == (status, "impossible, or a race")
    assert (checked.speedup, checked.verdict) == (None, None)


def test_what_was_never_evaluated_is_left_out(export: Path, tmp_path: Path) -> None:
    rewrite(export, lambda row: row | {"state": "queued"} if "level" in row else row)
    assert kept(export, tmp_path) == Tried()


def test_a_run_on_sim_is_left_out(export: Path, tmp_path: Path) -> None:
    def to_sim(row: dict[str, Any]) -> dict[str, Any]:
        if row["type"] != "run":
            return row
        return row | {"settings": row["settings"] | {"device": "sim", "gpu": None}}

    rewrite(export, to_sim)
    assert list(keep([export], tmp_path)) == [f"{export}: a run on sim, left out"]


@pytest.mark.parametrize(
    "text", ["", "{}", "5", "[1]", "no JSON", '{"type": "run", "schema": "other/1"}']
)
def test_what_is_no_export_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text, "utf-8")
    with pytest.raises(SystemExit, match=r"x\.jsonl is"):
        list(keep([path], tmp_path))
