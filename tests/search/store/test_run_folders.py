"""Runs named by their id or a part of it, and the folders that new ones get."""

import re
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.search.store.run_folders import find_folder, find_run, new_run_folder
from kopt.search.store.store import FILE_NAME

NOUNS = ("run", "runs")
FOLDERS = [Path(f"run-{number}") for number in (12, 11, 1, 3, 4, 5, 6)]


@pytest.mark.parametrize(("text", "name"), [("run-1", "run-1"), ("-12", "run-12"), ("3", "run-3")])
def test_a_folder_is_named_whole_or_by_an_unmistakable_part(text: str, name: str) -> None:
    assert find_folder(text, FOLDERS, NOUNS).name == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("n-1", "several runs match 'n-1'; newest first: run-12, run-11, run-1"),
        ("run", "several runs match 'run'; newest first: run-12, run-11, run-1, run-3, run-4"),
        ("x", "no run matches 'x'; newest first: run-12, run-11, run-1, run-3, run-4"),
        ("", "no run matches ''; newest first: run-12, run-11, run-1, run-3, run-4"),
    ],
)
def test_what_names_none_or_several_is_told_what_there_is(text: str, said: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_folder(text, FOLDERS, NOUNS)
    assert str(caught.value) == said


def test_where_there_is_no_run_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no run matches 'run-1'; newest first: none yet"):
        find_run("run-1", Settings(home=tmp_path))


def test_the_newest_run_comes_first(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    for name in ("run-20260102-000000-000", "run-20260103-000000-000", "run-20260101-000000-000"):
        (settings.runs / name).mkdir(parents=True)
        (settings.runs / name / FILE_NAME).touch()
    with pytest.raises(ToolError, match=r"first: run-20260103\S* run-20260102\S* run-20260101"):
        find_run("run", settings)


def test_a_new_folder_is_named_by_its_time_and_closed_to_others(tmp_path: Path) -> None:
    folders = [new_run_folder(tmp_path), new_run_folder(tmp_path)]
    assert [folder.name for folder in folders] == sorted({folder.name for folder in folders})
    for folder in folders:
        assert re.fullmatch(r"run-\d{8}-\d{6}-\d{3}", folder.name)
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot create"):
        new_run_folder(tmp_path / "absent")
