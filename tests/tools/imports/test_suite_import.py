"""Many tasks imported into a suite: order, resuming, refusals; the import itself is a stand-in."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kopt.config.errors import NoAnswer, SetupError, ToolError, UnjudgeableFunction
from kopt.config.settings import Settings
from kopt.config.time_left import TimeLeft
from kopt.tools.imports import stage
from kopt.tools.imports.foreign_task import ForeignTask, Selection
from kopt.tools.imports.imported_task import ImportedSuite
from kopt.tools.imports.kernelbench import kernelbench_tasks
from kopt.tools.imports.stage import SuiteImportRequest, import_suite
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.pytorch.importing.stage import ImportRequest, ImportResult
from kopt.tools.suite.results_folder import writing_results
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_score import ScoreRequest, score_suite
from support.foreign_checkouts import RANDOM, SCALED, write_kernelbench
from support.small_suites import write_task
from support.suite_results import SIM_SET, task_result


class Importer:
    """Takes the place of the import: writes a problem, or refuses what draws random numbers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.clock_s = 0.0
        """The time on the clock of the suite's import: each task takes twenty seconds."""

    def __call__(self, request: ImportRequest, _: Settings) -> ImportResult:
        text = Path(request.export.source).read_text("utf-8")
        request.progress("step 1 of 6: loading, about 7 s left as last time")
        self.clock_s += 20.0
        self.asked.append(request.origin)
        if "machine" in text:
            raise SetupError("torch is missing")
        if "dropout" in text:
            raise UnjudgeableFunction(f"{request.export.source}: draws random numbers", "random")
        if "* 0" in text:
            raise UnjudgeableFunction("output out is the same for all inputs", "degenerate")
        if "killed" in text:
            raise NoAnswer("the child that runs it ended with -9")
        if "mutated" in text:
            raise ToolError("torch.export cannot export it: a constant is mutated")
        assert request.name is not None
        folder = write_task(request.folder, request.name)
        return ImportResult(
            sandbox=None,
            name=request.name,
            folder=str(folder),
            source=request.source,
            torch="2",
            nodes=1,
            launches=1,
            parameters=0,
            workloads=(),
            regimes=(),
            left_out={},
            changed={},
            row_axis=None,
            export=ExportRequest(source="model.py"),
        )


@pytest.fixture
def importer(monkeypatch: pytest.MonkeyPatch) -> Importer:
    """Stand in for the import of one task."""
    made = Importer()
    monkeypatch.setattr(stage, "import_function", made)
    monkeypatch.setattr(stage, "TimeLeft", partial(TimeLeft, clock=lambda: made.clock_s))
    return made


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., SuiteImportRequest]:
    """Return what makes a request for a checkout of three tasks."""
    tasks = {
        "level1/2_Second Task.py": SCALED,
        "level1/10_Tenth.py": SCALED,
        "level2/1_Dropout.py": RANDOM,
        "level2/notes.txt": "no task",
    }
    checkout = write_kernelbench(tmp_path / "checkout", tasks)

    def made(**changes: object) -> SuiteImportRequest:
        request = SuiteImportRequest("kernelbench", checkout, tmp_path / "kb", Selection())
        return replace(request, **changes)  # type: ignore[arg-type] # fields of the request

    return made


def _rows(suite: ImportedSuite) -> list[tuple[str, str]]:
    return [(row.task, row.outcome) for row in suite.tasks]


ALL = [
    ("l1_2_second_task", "imported"),
    ("l1_10_tenth", "imported"),
    ("l2_1_dropout", "refused"),
]


def test_every_task_is_a_row_and_the_folder_is_a_suite(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    request = request_of()
    result = import_suite(request, settings)
    assert _rows(result) == ALL
    refused = result.tasks[2]
    assert refused.reason == "1_Dropout.py: draws random numbers"  # no folder of this machine
    suite = load_suite(request.folder)
    assert [(one.name, one.group, one.mark) for one in suite.tasks] == [
        ("l1_2_second_task", "level1", None),
        ("l1_10_tenth", "level1", None),
        ("l2_1_dropout", "level2", "random"),
    ]
    assert suite.tasks[2].random == refused.reason


def test_progress_counts_the_tasks_of_this_call_and_tells_when_all_will_be_done(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    lines: list[str] = []
    import_suite(request_of(progress=lines.append), settings)
    steps = [line.replace(": step 1 of 6: loading", "") for line in lines]
    assert [step.partition(",")[2] for step in steps] == [
        "",
        " about 40 s left",
        " about 20 s left",
    ]
    assert [step.partition(": ")[0] for step in steps] == ["1 of 3", "2 of 3", "3 of 3"]
    lines.clear()
    import_suite(request_of(progress=lines.append, anew=True), settings)
    assert lines[0] == "2 of 3 tasks are done already"
    assert lines[1].startswith("1 of 1: ") and lines[1].endswith(", about 7 s left as last time")
    assert len(lines) == 2


def test_a_task_that_cannot_be_judged_is_marked_and_scored_as_not_valid(
    importer: Importer, tmp_path: Path, settings: Settings
) -> None:
    tasks = {
        "level1/1_Scaled.py": SCALED,
        "level1/2_Zero.py": SCALED.replace("* self.scale", "* 0"),
        "level1/3_Constant.py": f"# a constant is mutated\n{SCALED}",
        "level1/4_Dropout.py": RANDOM,
    }
    checkout = write_kernelbench(tmp_path / "checkout", tasks)
    folder = tmp_path / "kb"
    result = import_suite(
        SuiteImportRequest("kernelbench", checkout, folder, Selection()), settings
    )
    assert len(result.tasks) == 4
    suite = load_suite(folder)
    assert {one.name: (one.mark, one.why) for one in suite.tasks} == {
        "l1_1_scaled": (None, ""),
        "l1_2_zero": ("degenerate", "output out is the same for all inputs"),
        "l1_3_constant": ("unsupported", "torch.export cannot export it: a constant is mutated"),
        "l1_4_dropout": ("random", "4_Dropout.py: draws random numbers"),
    }
    with writing_results(tmp_path / "results", SIM_SET) as results:
        results.write(task_result("l1_1_scaled"))
        score = score_suite(suite, results, ScoreRequest())
    whole, sound = score.scores
    assert (whole.tasks, whole.valid, sound.tasks, sound.valid) == (4, 1, 2, 1)
    assert [one.reason for one in score.tasks[1:]] == [one.why for one in suite.tasks[1:]]


def test_the_next_call_goes_on_where_the_limit_ended_the_first(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    first = import_suite(request_of(limit=1), settings)
    assert (_rows(first), first.planned, first.kept) == (ALL[:1], 3, 0)
    second = import_suite(request_of(limit=1), settings)
    assert (_rows(second), second.kept) == (ALL[:2], 1)
    third = import_suite(request_of(), settings)
    assert (_rows(third), third.kept) == (ALL, 2)
    assert import_suite(request_of(), settings).kept == 3
    assert len(importer.asked) == 3


def test_refused_tasks_are_tried_again_when_asked(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    import_suite(request_of(), settings)
    assert _rows(import_suite(request_of(anew=True), settings)) == ALL
    assert importer.asked.count("level2/1_Dropout.py") == 2


def test_an_import_that_ended_without_an_answer_is_tried_again_by_the_next_call(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    request = request_of()
    path = request.checkout / "KernelBench/level1/10_Tenth.py"
    path.write_text(f"# killed\n{SCALED}", "utf-8")
    for _ in range(2):
        result = import_suite(request, settings)
        assert _rows(result)[1] == ("l1_10_tenth", "refused")
        assert "ended with -9" in result.tasks[1].reason
    assert importer.asked.count("level1/10_Tenth.py") == 2
    assert importer.asked.count("level2/1_Dropout.py") == 1


def test_what_the_machine_lacks_ends_the_import_and_keeps_what_is_done(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    request = request_of()
    path = request.checkout / "KernelBench/level1/10_Tenth.py"
    path.write_text("# machine", "utf-8")
    kept: list[ImportedSuite] = []
    with pytest.raises(SetupError, match="torch is missing"):
        import_suite(request_of(keep=kept.append), settings)
    assert _rows(kept[-1]) == ALL[:1]
    assert [one.name for one in load_suite(request.folder).tasks] == ["l1_2_second_task"]


def test_a_problem_of_another_text_is_left_and_named(
    importer: Importer, request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    request = request_of()
    import_suite(request, settings)
    path = request.checkout / "KernelBench/level1/10_Tenth.py"
    path.write_text(SCALED + "\n# newer\n", "utf-8")
    row = import_suite(request, settings).tasks[1]
    assert (row.outcome, "remove it to import this one" in row.reason) == ("outdated", True)
    shutil.rmtree(request.folder / "level1/l1_10_tenth")
    assert _rows(import_suite(request, settings)) == ALL


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(levels=("level2",)), ["l2_1_dropout"]),
        (Selection(levels=("level1",), ids=("10",)), ["l1_10_tenth"]),
        (Selection(ids=("1", "2")), ["l1_2_second_task", "l2_1_dropout"]),
    ],
)
def test_levels_and_ids_choose_tasks(
    importer: Importer,
    request_of: Callable[..., SuiteImportRequest],
    settings: Settings,
    selection: Selection,
    names: list[str],
) -> None:
    result = import_suite(request_of(selection=selection), settings)
    assert [row.task for row in result.tasks] == names


def test_a_level_or_id_of_no_task_names_those_that_there_are(
    request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    with pytest.raises(ToolError, match="--level level7: no task is of it; did you mean"):
        import_suite(request_of(selection=Selection(levels=("level7",))), settings)
    with pytest.raises(ToolError, match="--ids 99: no task is of it; known: 1, 10, 2"):
        import_suite(request_of(selection=Selection(ids=("99",))), settings)


def test_folders_of_somebody_else_are_not_written(
    request_of: Callable[..., SuiteImportRequest], settings: Settings
) -> None:
    request = request_of()
    request.folder.mkdir()
    (request.folder / "suite.yaml").write_text("name: mine\nall: true\n", "utf-8")
    with pytest.raises(ToolError, match="was not written by kopt import"):
        import_suite(request, settings)


def test_a_folder_without_tasks_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no folder level1, level2"):
        list(kernelbench_tasks(tmp_path))


def test_a_file_that_is_no_text_is_a_fault_of_its_task_alone(tmp_path: Path) -> None:
    root = write_kernelbench(tmp_path, {"level1/1_Good.py": SCALED, "level1/2_Bad.py": SCALED})
    (root / "KernelBench/level1/2_Bad.py").write_bytes(b"\xff\xfe\x00")
    found: list[ForeignTask] = list(kernelbench_tasks(root))
    assert [one.fault for one in found] == ["", "cannot read 2_Bad.py: it is not UTF-8 text"]
