"""`kopt new`: what is wrong with a call is said before any torch is loaded."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["missing.py"], "there is no file missing.py"),
        (["torch.nn"], "neither a file FILE.py nor MODULE:NAME"),
        (["here.py", "--shape", "16x4"], "is not of the form x=16,4096"),
        (["here.py", "--small", "batch"], "is not of the form NAME=8"),
        (["here.py", "--name", "Big Model"], "does not have the form"),
    ],
)
def test_a_malformed_call_is_refused_with_what_is_allowed(
    words: list[str], said: str, kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.py").write_text("x = 1\n", "utf-8")
    ending = kopt("new", *words, "--json")
    assert ending.code == ExitCode.USAGE
    assert said in ending.document["message"]


def test_a_folder_that_is_there_is_left_alone(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.py").write_text("x = 1\n", "utf-8")
    (tmp_path / "here").mkdir()
    ending = kopt("new", "here.py", "--json")
    assert ending.code == ExitCode.USAGE
    assert "is there already" in ending.document["message"]
    assert list((tmp_path / "here").iterdir()) == []
