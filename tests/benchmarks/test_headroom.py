"""The headroom survey over a scripted device: what is measured, what it says, how it goes on."""

from dataclasses import replace
from pathlib import Path

import pytest
from bench_headroom import ROW_BYTES, Kernel, Survey, copied_bytes, kernels_of, load, write
from headroom_table import KEPT, MARKS, Headroom, headroom_markdown
from markdown_tables import insert_between

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.bench import plain_copy, reference_side
from kopt.tools.bench.plain_copy import SHAPES
from kopt.tools.devices.device import Arrays, ExecutionRequest
from support.bench_cases import OTHER, ROW_MAJOR, FakeCompiler, bench_problem
from support.copying_timer import CopyingTimer
from support.scripted_timer import FACTS, QUIET, LibraryScript, Script, ScriptedTimer

PATHS = {
    ("lib", False): LibraryScript(us=6.0),
    ("lib", True): LibraryScript(us=4.4),
    ("other", False): LibraryScript(us=3.0, allocations=2),
}


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return bench_problem(tmp_path / "problem", (ROW_MAJOR, OTHER), ((8, 64), (256, 64)))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    fake = FakeCompiler()
    for module in (reference_side, plain_copy):
        monkeypatch.setattr(module, "compile_candidate", fake)
    return Settings(home=tmp_path / "home", jobs=1)


def blank(request: ExecutionRequest, outputs: Arrays) -> None:
    del request
    outputs["y_bf16"].fill(0)


def survey(settings: Settings, out: Path, script: Script, ends_at: float = 1e12) -> Survey:
    timer = CopyingTimer(script)
    return Survey(timer, settings, out, ends_at, load(out, timer).model_copy(update={"planned": 2}))


def kernels(problem: Problem) -> list[Kernel]:
    return [Kernel(problem, workload) for workload in problem.workloads]


def script() -> Script:
    return Script(libraries=dict(PATHS), empty_us=1.1, reference_us=8.0, noise=QUIET)


def test_headroom_is_the_fastest_fair_path_over_the_higher_floor(
    problem: Problem, settings: Settings, tmp_path: Path
) -> None:
    found = survey(settings, tmp_path / "out", script())
    found.run(kernels(problem))
    row = found.found.rows[0]
    assert row.times.baseline.label == "lib +PDL"  # `other` allocates inside its call
    assert row.floor_us == pytest.approx(1.1)  # 8 rows: the launch, not the bytes
    assert row.headroom == pytest.approx(4.4 / 1.1)
    assert row.copy_time.total_bytes == copied_bytes(row.total_bytes)
    assert row.over_copy == pytest.approx(4.4 / row.copy_time.latency.median_us)
    text = headroom_markdown(found.found)
    assert "up to 128 rows (1): geometric mean of the headroom 4.00x" in text
    assert "above 128 rows (1)" in text
    assert "it allocates memory inside the call" in text


def test_what_a_call_had_no_time_for_is_measured_by_the_next(
    problem: Problem, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    late = survey(settings, out, script(), ends_at=0.0)
    late.run(kernels(problem))
    assert late.found.rows == ()
    first = survey(settings, out, script())
    first.run(kernels(problem)[:1])
    assert "INCOMPLETE: 1 of 2" in (out / "headroom.md").read_text("utf-8")
    second = survey(settings, out, script())
    second.run(kernels(problem))
    assert [row.kernel for row in second.found.rows] == list(problem.kernel_ids)
    assert second.found.rows[0] == first.found.rows[0]


def test_a_path_that_fails_while_it_is_timed_is_left_out_with_its_reason(
    problem: Problem, settings: Settings, tmp_path: Path
) -> None:
    faulty = script()
    faulty.libraries["lib", True] = LibraryScript(us=4.4, fails_timed=Status.LAUNCH_ERROR)
    faulty.libraries["other", False] = LibraryScript(status=Status.LAUNCH_ERROR, message="no such")
    found = survey(settings, tmp_path / "out", faulty)
    found.run(kernels(problem)[:1])
    row = found.found.rows[0]
    assert row.times.baseline.label == "lib"
    reasons = {(path.name, path.pdl): path.reason for path in row.times.rejected}
    assert "when it is timed" in reasons["lib", True]
    assert "no such" in reasons["other", False]


def test_without_a_library_the_reference_is_the_baseline(
    settings: Settings, tmp_path: Path
) -> None:
    alone = bench_problem(tmp_path / "alone")
    found = survey(settings, tmp_path / "out", script())
    found.run(kernels(alone))
    assert found.found.rows[0].times.baseline.label == "reference"


def test_a_broken_reference_is_told_and_tried_again(
    problem: Problem, settings: Settings, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    broken = replace(script(), spoil_reference=blank)
    first = survey(settings, out, broken)
    first.run(kernels(problem)[:1])
    assert "reference.cu cannot be a baseline" in first.found.failed[problem.kernel_ids[0]]
    second = survey(settings, out, script())
    second.run(kernels(problem)[:1])
    assert second.found.failed == {}
    assert len(second.found.rows) == 1


def test_files_of_another_device_are_refused(tmp_path: Path) -> None:
    other = FACTS.model_copy(update={"uuid": "GPU-other"})
    write(tmp_path, Headroom(gpu=other, planned=0))
    with pytest.raises(SystemExit, match="name another --out"):
        load(tmp_path, ScriptedTimer())


def test_copies_are_of_whole_rows_and_every_shape_is_tried(
    problem: Problem, settings: Settings, tmp_path: Path
) -> None:
    found = survey(settings, tmp_path / "out", script())
    found.run(kernels(problem)[:1])
    timer = found.device
    assert isinstance(timer, ScriptedTimer)
    assert len(timer.sessions[0].sides) == 2 * len(SHAPES)
    assert copied_bytes(ROW_BYTES) == ROW_BYTES
    assert copied_bytes(ROW_BYTES + 1) == 2 * ROW_BYTES


def test_kernels_are_those_with_a_library_for_the_device() -> None:
    assert len(kernels_of([], (9, 0))) == 18
    assert {kernel.problem.name for kernel in kernels_of(["rope"], (9, 0))} == {"rope_quantize_fp8"}
    assert kernels_of([], (7, 0)) == []


def test_the_page_says_what_the_kept_measurements_do() -> None:
    found = Headroom.model_validate_json(KEPT.read_text("utf-8"))
    page = (Path(__file__).parents[2] / "docs" / "headroom.md").read_text("utf-8")
    assert insert_between(page, MARKS, headroom_markdown(found)) == page
