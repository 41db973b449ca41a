"""`kopt split` and `kopt stitch`: what is wrong with a call is one line that says what to do."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "-o", "parts"], "nowhere is no folder: name the folder of an imported"),
        (["model.py", "-o", "parts"], "kopt new FILE.py -o DIR makes one"),
        (["empty", "-o", "parts"], "empty has no graph.json: kopt new writes such a folder"),
        (["empty", "-o", "empty"], "empty is there already"),
        (["empty", "-o", "p", "--by", "block", "--parts", "3"], "two ways to cut: name one"),
        (["empty", "-o", "p", "--device", "sim"], "sim measures no time"),
    ],
)
def test_a_split_of_nothing_is_refused(
    words: list[str], said: str, kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "model.py").write_text("x = 1\n", "utf-8")
    ending = kopt("split", *words, "--json")
    assert ending.code == ExitCode.USAGE
    assert said in ending.document["message"]
    assert "\n" not in ending.document["message"]
    assert not (tmp_path / "parts").exists()


@pytest.mark.parametrize(
    ("folder", "said"),
    [("nowhere", "there is no folder nowhere"), ("empty", "empty has no split.json: kopt split")],
)
def test_a_stitch_of_no_split_is_refused(
    folder: str, said: str, kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    ending = kopt("stitch", folder, "-o", "whole.cu", "--json")
    assert ending.code == ExitCode.USAGE
    assert said in ending.document["message"]
    assert not (tmp_path / "whole.cu").exists()


def test_a_suite_is_run_alone(kopt: Kopt, tmp_path: Path) -> None:
    ending = kopt("run", "--suite", tmp_path, "--all", "--json")
    assert ending.code == ExitCode.USAGE
    assert "--suite runs its own tasks" in ending.document["message"]
