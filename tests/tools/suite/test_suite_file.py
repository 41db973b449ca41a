"""suite.yaml: which tasks there are, their groups and marks, and what each mistake says."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.tools.suite.suite_file import load_suite
from support.small_suites import write_suite, write_task

MARKED = """\
name: kb
group: level1
problems:
  relu: {}
  softmax: {group: level2, candidate: mine.cu, workloads: [b8xh64]}
  zeros: {degenerate: its output is constant}
  dropout: {random: dropout in training mode}
  rnn: {unsupported: a tensor that is no buffer is mutated}
  huge: {excluded: does not fit this GPU}
"""


def test_tasks_have_their_groups_candidates_and_marks(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "kb", MARKED)
    for name in ("relu", "softmax", "zeros", "huge"):
        write_task(suite, name)
    found = load_suite(suite)
    tasks = {task.name: task for task in found.tasks}
    assert list(tasks) == ["relu", "softmax", "zeros", "dropout", "rnn", "huge"]
    assert (tasks["relu"].group, tasks["relu"].candidate) == ("level1", "reference.cu")
    assert (tasks["softmax"].group, tasks["softmax"].candidate) == ("level2", "mine.cu")
    assert (tasks["zeros"].mark, tasks["zeros"].is_sound) == ("degenerate", False)
    assert (tasks["rnn"].mark, tasks["rnn"].is_sound) == ("unsupported", True)
    assert [task.name for task in found.counted] == ["relu", "softmax", "zeros", "dropout", "rnn"]
    assert found.groups == ("level1", "level2")


def test_a_folder_in_between_is_the_group_of_its_problems(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "kb")
    write_task(suite / "level2", "one_rows")
    write_task(suite / "level1", "two_rows")
    write_task(suite, "more_rows")
    tasks = load_suite(suite).tasks
    assert {task.name: task.group for task in tasks} == {
        "more_rows": "all",
        "two_rows": "level1",
        "one_rows": "level2",
    }


def test_named_problems_come_first_and_all_adds_the_others(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "kb", "name: kb\nall: true\nproblems:\n  two_rows: {}\n")
    write_task(suite, "one_rows")
    write_task(suite, "two_rows")
    assert [task.name for task in load_suite(suite).tasks] == ["two_rows", "one_rows"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: kb\n", "suite.yaml:1: suite: no task: name problems, or write all: true"),
        ("all: true\n", ":1: suite: the key 'name' is missing"),
        ("name: kb\nproblem: {}\n", ":2: suite: unknown key 'problem'; did you mean problems?"),
        ("name: kb\nall: yes\n", ":2: suite: all: expected true or false, got 'yes'"),
        ("name: kb\nproblems: [relu]\n", ":2: suite: problems: expected a mapping"),
        ("name: kb\nproblems:\n  Relu: {}\n", ":3: problem Relu: 'Relu' does not have the form"),
        (
            "name: kb\nproblems:\n  one_row: {}\n",
            ":3: problem one_row: no folder one_row with a problem.yaml",
        ),
        (
            "name: kb\nproblems:\n  one_rows: {degenrate: x}\n",
            ":3: problem one_rows: unknown key 'degenrate'; did you mean degenerate?",
        ),
        (
            "name: kb\nproblems:\n  one_rows: {degenerate: x, random: y}\n",
            "problem one_rows: degenerate and random stand together",
        ),
        (
            "name: kb\nproblems:\n  one_rows: {degenerate: }\n",
            "expected text, got nothing",
        ),
        ("name: kb\nname: kb\n", ":2: the key 'name' stands here and in line 1"),
        ("name: [\n", ":2:"),
    ],
)
def test_each_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    suite = write_suite(tmp_path / "kb", text)
    write_task(suite, "one_rows")
    with pytest.raises(ToolError) as caught:
        load_suite(suite)
    assert message in str(caught.value)


def test_a_folder_without_suite_yaml_is_told_how_to_become_one(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"has no suite.yaml; two lines make one: name: "):
        load_suite(tmp_path)


def test_two_folders_of_one_name_are_refused(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "kb")
    write_task(suite / "level1", "one_rows")
    write_task(suite / "level2", "one_rows")
    with pytest.raises(ToolError, match="have one name"):
        load_suite(suite)


def test_a_suite_of_no_problem_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="a suite needs problems"):
        load_suite(write_suite(tmp_path / "kb"))
