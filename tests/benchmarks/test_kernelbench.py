"""KernelBench's table: what is done again, what a row says, how rows are counted."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from kernelbench_import import Batch, Pool, is_kept, keys_of, to_check
from kernelbench_rows import Row, checkout_of, read_row, sources_digest, summary, table, write_row
from kernelbench_task import Pending, Task, Trial, run_check, tried

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from support.shared_caches import share_caches
from support.tiny_problem import tiny_problem


@pytest.fixture
def settings(tmp_path: Path, shared_caches: Path) -> Settings:
    share_caches(tmp_path / "home", shared_caches)
    return Settings(home=tmp_path / "home", jobs=2)


@pytest.fixture
def trial(settings: Settings, tmp_path: Path) -> Trial:
    return Trial(tmp_path / "out", settings, "quick", limit_s=60, jobs=2)


@pytest.fixture
def tasks(tmp_path: Path) -> list[Task]:
    folder = tmp_path / "level1"
    folder.mkdir()
    for number in (1, 2, 10):
        (folder / f"{number}_Some_Task_.py").write_text(f"# {number}\n", "utf-8")
    return [Task(1, folder / f"{number}_Some_Task_.py") for number in (1, 2, 10)]


def row(number: int = 1, level: int = 1, **other: object) -> Row:
    name = f"l{level}_{number}_some_task"
    made = Row(level=level, number=number, name=name, key="k", outcome="imported")
    return Row.model_validate(made.model_dump() | other)


def test_a_task_is_called_after_its_file(tasks: list[Task]) -> None:
    assert [task.name for task in tasks] == [
        *("l1_1_some_task", "l1_2_some_task", "l1_10_some_task"),
    ]
    long = Task(2, Path("7_" + "word_" * 30 + ".py"))
    assert len(long.name) <= 60
    assert not long.name.endswith("_")


def test_a_finished_task_is_kept_until_its_file_changes(tasks: list[Task], trial: Trial) -> None:
    keys = keys_of(tasks, "2.13", "quick")
    write_row(trial.output, row(key=keys["l1_1_some_task"], outcome="refused", reason="why"))
    assert [is_kept(task, keys, trial, older=False) for task in tasks] == [True, False, False]
    tasks[0].path.write_text("# another\n", "utf-8")
    keys = keys_of(tasks, "2.13", "quick")
    assert not is_kept(tasks[0], keys, trial, older=False)
    assert is_kept(tasks[0], keys, trial, older=True)


def test_rows_of_one_level_of_checks_are_not_those_of_another(tasks: list[Task]) -> None:
    assert keys_of(tasks, "2.13", "quick") != keys_of(tasks, "2.13", "full")


def test_sources_that_decide_change_the_digest_and_others_do_not(tmp_path: Path) -> None:
    for file in ("tools/check/judge.py", "kernels/problems/own/oracle.py", "tools/sim/a.cubin"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("1", "utf-8")
    digest = sources_digest(tmp_path)
    (tmp_path / "kernels/problems/own/oracle.py").write_text("2", "utf-8")
    (tmp_path / "tools/sim/a.cubin").write_text("2", "utf-8")
    assert sources_digest(tmp_path) == digest
    (tmp_path / "tools/check/judge.py").write_text("2", "utf-8")
    assert sources_digest(tmp_path) != digest


def test_checks_take_what_is_imported_few_launches_first(tasks: list[Task], trial: Trial) -> None:
    for number, launches, outcome in ((1, 9, "imported"), (2, 1, "passed"), (10, 3, "imported")):
        write_row(trial.output, row(number, launches=launches, outcome=outcome))
    assert [one.task.number for one in to_check(tasks, trial)] == [10, 1]


def test_what_a_limit_of_time_ended_is_tried_again(tasks: list[Task], trial: Trial) -> None:
    keys = keys_of(tasks, "2.13", "quick")
    ended = row(key=keys["l1_1_some_task"], outcome="failed", timed_out=True)
    write_row(trial.output, ended)
    assert not is_kept(tasks[0], keys, trial, older=False)
    checked = ended.model_copy(update={"launches": 2})
    write_row(trial.output, checked)
    assert is_kept(tasks[0], keys, trial, older=False)
    assert [one.task.number for one in to_check(tasks, trial)] == [1]
    assert not to_check(tasks, trial)[0].row.timed_out


def test_a_row_that_is_damaged_is_none(trial: Trial) -> None:
    write_row(trial.output, row())
    (trial.output / "rows" / "l1_1_some_task.json").write_text("{", "utf-8")
    assert read_row(trial.output, "l1_1_some_task") is None


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ToolError("no such operator"), "no such operator"),
        (KeyError("x"), "a bug: KeyError: 'x'"),
    ],
)
def test_what_a_step_raises_is_the_reason_of_its_row(error: Exception, reason: str) -> None:
    def fail(_: Row) -> Row:
        raise error

    ended = tried(row(), fail)
    assert (ended.outcome, ended.reason) == ("failed", reason)


@pytest.mark.slow  # a check on the simulator for each
@pytest.mark.parametrize(("spoilt", "outcome"), [(False, "passed"), (True, "failed")])
def test_a_kernel_is_judged_by_a_check(spoilt: bool, outcome: str, trial: Trial) -> None:
    (trial.output / "problems").mkdir(parents=True)
    folder = tiny_problem(trial.output / "problems").folder
    source = (folder / "reference.cu").read_text("utf-8")
    (folder / "reference.cu").write_text(
        source.replace("* scale", "+ scale") if spoilt else source, "utf-8"
    )
    imported = row(launches=1, name=folder.name)
    run_check(Pending(Task(1, Path("1_Some_Task.py")), "k", imported), trial)
    kept = read_row(trial.output, folder.name)
    assert kept is not None
    assert kept.outcome == outcome, kept.reason
    assert kept.check_cpu_s > 0
    assert ("incorrect" in kept.reason) == spoilt


def _ends(_: Batch) -> None:
    os._exit(3)


def _crashes(_: Batch) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hangs(_: Batch) -> None:
    signal.pause()


@pytest.mark.parametrize(
    ("work", "reason"),
    [(_ends, "ended with 3"), (_crashes, "ended with -9"), (_hangs, "ended with 1")],
)
def test_a_process_that_leaves_no_row_is_a_failure(
    work: Callable[[Batch], None],
    reason: str,
    tasks: list[Task],
    trial: Trial,
    capfd: pytest.CaptureFixture[str],
) -> None:
    kept = row(launches=2)
    write_row(trial.output, kept)
    Pool(trial, work).run(
        [((Pending(tasks[0], "k", kept),), 0.2), ((Pending(tasks[1], "k"),), 0.2)]
    )
    for number in (1, 2):
        found = read_row(trial.output, f"l1_{number}_some_task")
        assert found is not None
        assert found.outcome == "failed"
        assert reason in found.reason
    assert "failed" in capfd.readouterr().out


def test_the_summary_counts_by_level() -> None:
    rows = [
        row(1, launches=1, outcome="passed", import_cpu_s=2.0, check_cpu_s=3.0),
        row(2, outcome="refused", reason="draws random numbers"),
        row(1, level=3, launches=4, outcome="failed", reason="incorrect: out | by 2"),
    ]
    said = summary(rows, missing=2, older=1)
    assert "| 1 | 2 | 1 | 1 | 1 | 0 | 5 |" in said
    assert "| 3 | 1 | 1 | 0 | 0 | 1 | 0 |" in said
    assert "| all | 3 | 2 | 1 | 1 | 1 | 5 |" in said
    assert "2 tasks were not tried" in said
    assert "1 rows are of other sources" in said
    text = table([*rows[::-1]])
    assert text.index("passed") < text.index("refused: draws random numbers") < text.index("failed")
    assert r"out \| by 2" in text


def test_a_missing_checkout_is_told_with_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="KERNELBENCH is not set: give KERNELBENCH=FOLDER"):
        checkout_of("")
    with pytest.raises(ValueError, match="has no folder level1"):
        checkout_of(str(tmp_path))
    (tmp_path / "KernelBench" / "level1").mkdir(parents=True)
    assert checkout_of(str(tmp_path)) == tmp_path / "KernelBench"
    assert checkout_of(str(tmp_path / "KernelBench")) == tmp_path / "KernelBench"
