"""A run of a suite: what is kept, what is run again, after a kill, beside another process."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.tools.suite import suite_stage
from kopt.tools.suite.results_folder import find_results, writing_results
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_stage import SuiteRequest, SuiteRun, run_suite
from kopt.tools.suite.task_result import SuiteTaskResult
from kopt.tools.suite.task_stage import PreparedTask, SuiteSite
from support import suite_crash_driver
from support.small_suites import write_suite, write_task
from support.suite_results import GPU_SET, SIM_SET, sim_site, task_result

NAMES = ("one_rows", "three_rows", "two_rows")
Run = Callable[..., SuiteRun]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return the folder of a suite of three tasks."""
    folder = write_suite(tmp_path / "kb")
    for name in NAMES:
        write_task(folder, name)
    return folder


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of tasks that were run, which takes no time here."""
    names: list[str] = []

    def at_once(prepared: PreparedTask, *_: object) -> SuiteTaskResult:
        names.append(prepared.task.name)
        return task_result(prepared.task.name, key=prepared.key).model_copy(
            update={"fault": prepared.fault}
        )

    monkeypatch.setattr(suite_stage, "run_task", at_once)
    return names


@pytest.fixture
def run(suite: Path, tmp_path: Path) -> Run:
    """Return a function that runs the suite."""

    def call(jobs: int = 1, **asked: object) -> SuiteRun:
        with writing_results(suite / "out", SIM_SET) as folder:
            request = SuiteRequest(load_suite(suite), **asked)  # type: ignore[arg-type]  # of tests
            return run_suite(request, [sim_site(tmp_path / "home")] * jobs, folder)

    return call


def test_every_task_is_run_once_and_then_kept(run: Run, begun: list[str]) -> None:
    first, second = run(), run()
    assert begun == list(NAMES)
    assert (first.kept, second.kept) == (0, 3)
    assert second.results == first.results


def test_several_tasks_at_once_come_to_the_same(run: Run, begun: list[str]) -> None:
    together = run(jobs=3)
    assert sorted(begun) == list(NAMES)
    assert [one.task for one in together.results] == list(NAMES)
    assert run().kept == 3


def test_no_site_has_two_tasks_at_once(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sites = [sim_site(tmp_path / name) for name in ("one", "other")]
    both_began, is_last = threading.Barrier(2), threading.Event()
    used: list[Path] = []
    busy: set[Path] = set()

    def at_once(prepared: PreparedTask, site: SuiteSite, *_: object) -> SuiteTaskResult:
        home = site.settings.home
        assert home not in busy
        busy.add(home)
        used.append(home)
        if not is_last.is_set():  # the first two tasks meet here: each has a site of its own
            both_began.wait(timeout=20.0)
            is_last.set()
        busy.remove(home)
        return task_result(prepared.task.name, key=prepared.key)

    monkeypatch.setattr(suite_stage, "run_task", at_once)
    with writing_results(suite / "out", SIM_SET) as folder:
        found = run_suite(SuiteRequest(load_suite(suite)), sites, folder)
    assert len(found.results) == len(used) == 3
    assert set(used) == {site.settings.home for site in sites}


@pytest.mark.parametrize(
    ("file", "text"),
    [("problem.yaml", "# changed"), ("oracle.py", "# changed"), ("reference.cu", "// changed")],
)
def test_a_task_that_changed_since_is_run_again(
    run: Run, begun: list[str], suite: Path, file: str, text: str
) -> None:
    run()
    path = suite / "two_rows" / file
    path.write_text(f"{path.read_text()}\n{text}\n")
    run()
    assert begun == [*NAMES, "two_rows"]


def test_anew_runs_all_of_them_again(run: Run, begun: list[str]) -> None:
    run()
    run(resumes=False)
    assert begun == [*NAMES, *NAMES]


def test_a_fault_is_tried_again_and_ends_nothing(run: Run, begun: list[str], suite: Path) -> None:
    good = (suite / "one_rows" / "problem.yaml").read_text()
    (suite / "one_rows" / "problem.yaml").write_text("name: one_rows\n")
    (suite / "three_rows" / "reference.cu").unlink()
    found = run()
    faults = {one.task: one.fault or "" for one in found.faults}
    assert "the key 'op_type' is missing" in faults["one_rows"]
    assert "there is no kernel to score" in faults["three_rows"]
    assert (found.valid, len(found.results)) == (1, 3)
    (suite / "one_rows" / "problem.yaml").write_text(good)
    again = run()
    assert begun == [*NAMES, "one_rows", "three_rows"]
    assert [one.task for one in again.faults] == ["three_rows"]


@pytest.mark.slow  # a process that is killed
def test_a_killed_run_goes_on_with_the_task_after_the_last_one_on_disk(
    run: Run, begun: list[str], suite: Path, tmp_path: Path
) -> None:
    arguments = (str(suite), str(tmp_path / "home"), "2")
    killed = subprocess.run(
        [sys.executable, suite_crash_driver.__file__, *arguments],
        check=False,
        capture_output=True,
        env={"PYTHONPATH": str(Path(suite_crash_driver.__file__).parents[1])},
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert run().kept == 2
    assert begun == ["two_rows"]


def test_a_result_that_is_cut_short_is_made_again(run: Run, begun: list[str], suite: Path) -> None:
    run()
    path = suite / "out" / SIM_SET.name / "two_rows.json"
    path.write_text(path.read_text()[:100])
    run()
    assert begun == [*NAMES, "two_rows"]


def test_what_the_machine_lacks_ends_the_run_and_keeps_what_is_done(
    run: Run, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_a_compiler(prepared: PreparedTask, *_: object) -> SuiteTaskResult:
        if begun:
            raise SetupError("no nvcc")
        begun.append(prepared.task.name)
        return task_result(prepared.task.name, key=prepared.key)

    with monkeypatch.context() as patch:
        patch.setattr(suite_stage, "run_task", without_a_compiler)
        with pytest.raises(SetupError, match="no nvcc"):
            run()
    assert run().kept == 1


def test_two_at_once_are_kept_apart_and_told_of_each_other(tmp_path: Path) -> None:
    with (
        writing_results(tmp_path, SIM_SET),
        pytest.raises(ToolError, match=r"worked on by process \d+ \(kopt suite run\)"),
        writing_results(tmp_path, SIM_SET),
    ):
        pytest.fail("both write to the same results")
    with writing_results(tmp_path, SIM_SET) as again:
        assert again.set == SIM_SET


def test_results_of_another_suite_are_not_mixed_in(tmp_path: Path) -> None:
    with writing_results(tmp_path, SIM_SET):
        pass
    other = SIM_SET.model_copy(update={"suite": "other"})
    with pytest.raises(ToolError, match="another suite"), writing_results(tmp_path, other):
        pytest.fail("it was mixed in")


def test_a_set_is_found_alone_or_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="kopt suite run makes them"):
        find_results(tmp_path, None)
    with writing_results(tmp_path, SIM_SET):
        pass
    assert find_results(tmp_path, None).set == SIM_SET
    with writing_results(tmp_path, GPU_SET):
        pass
    with pytest.raises(ToolError, match="holds 2 sets of results: name one, --set NAME: nvidia-h1"):
        find_results(tmp_path, None)
    assert find_results(tmp_path, "nvidia-h100-80gb-hbm3-suite").set == GPU_SET
    with pytest.raises(ToolError, match="no set of results is called 'sim'"):
        find_results(tmp_path, "sim")


def test_results_over_one_baseline_lie_apart(tmp_path: Path) -> None:
    eager = GPU_SET.model_copy(update={"over": ("eager",)})
    with writing_results(tmp_path, GPU_SET), writing_results(tmp_path, eager) as found:
        assert found.path.name == "nvidia-h100-80gb-hbm3-suite-over-eager"
    assert find_results(tmp_path, found.path.name).set == eager


def test_a_folder_that_cannot_be_written_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file in its place")
    with (
        pytest.raises(SetupError, match="name a folder that you can write, --results DIR"),
        writing_results(tmp_path / "results", SIM_SET),
    ):
        pytest.fail("it was written")


def test_only_the_tasks_of_a_group_are_run(begun: list[str], tmp_path: Path) -> None:
    folder = write_suite(tmp_path / "kb")
    write_task(folder / "level1", "one_rows")
    write_task(folder / "level2", "two_rows")
    request = SuiteRequest(load_suite(folder).of_group("level2"))
    with writing_results(tmp_path / "out", SIM_SET) as results:
        found = run_suite(request, [sim_site(tmp_path / "home")], results)
    assert (begun, found.planned) == (["two_rows"], 1)


def test_marked_tasks_are_run_unless_excluded_or_without_a_folder(
    begun: list[str], tmp_path: Path
) -> None:
    marks = "name: kb\nproblems:\n  a: {excluded: x}\n  b: {unsupported: y}\n  c: {degenerate: z}\n"
    folder = write_suite(tmp_path / "kb", marks)
    for name in ("a", "c"):
        write_task(folder, name)
    with writing_results(tmp_path / "out", SIM_SET) as results:
        site = sim_site(tmp_path / "home")
        found = run_suite(SuiteRequest(load_suite(folder)), [site], results)
    assert (begun, found.without_problem) == (["c"], ("b",))


def test_a_suite_without_a_problem_runs_nothing_and_says_so(
    begun: list[str], tmp_path: Path
) -> None:
    marks = "name: kb\nproblems:\n  a: {random: dropout}\n  b: {unsupported: y}\n"
    suite = load_suite(write_suite(tmp_path / "kb", marks))
    lines: list[str] = []
    with writing_results(tmp_path / "out", SIM_SET) as results:
        request = SuiteRequest(suite, progress=lines.append)
        found = run_suite(request, [sim_site(tmp_path / "home")] * 2, results)
    assert (begun, lines, found.without_problem) == ([], [], ("a", "b"))


def test_progress_says_which_task_of_how_many(run: Run, begun: list[str]) -> None:
    lines: list[str] = []
    run(progress=lines.append)
    assert lines == ["1 of 3: one_rows", "2 of 3: three_rows", "3 of 3: two_rows"]
    lines.clear()
    run(progress=lines.append)
    assert lines == ["3 of 3 tasks are done already"]
    assert len(begun) == 3
