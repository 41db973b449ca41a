"""`kopt import`: what it says, and what careless calls are told; no torch is loaded here."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.foreign_checkouts import definition, write_trace


def test_help_has_examples_of_every_format(kopt: Kopt) -> None:
    ending = kopt("import", "--help")
    assert ending.code == ExitCode.PASSED
    said = " ".join(ending.stdout.split())
    assert "Examples: kopt import kernelbench ~/KernelBench -o kb" in said
    assert "kopt import trace ~/flashinfer-trace" in said
    assert "Exit codes: 0 every task was imported" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["kernelbench", "missing", "-o", "kb"], "there is no folder missing"),
        (["kernelbench", ".", "-o", "kb"], "no folder level1, level2"),
        (["trace", ".", "-o", "kb"], "no definitions"),
        (["kernelbench", "."], "-o"),
        (["metr", ".", "-o", "kb"], "'metr' is not one of 'kernelbench'"),
    ],
)
def test_a_careless_call_is_told_what_is_looked_for(
    words: list[str], said: str, kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ending = kopt("import", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
    assert list(tmp_path.iterdir()) == []


def test_refused_tasks_are_rows_and_end_with_1(
    kopt: Kopt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_trace(tmp_path / "set", [definition("one"), definition("two")], [])
    monkeypatch.chdir(tmp_path)
    ending = kopt("import", "trace", "set", "-o", "fi", "--json")
    assert ending.code == ExitCode.FELL_SHORT
    document = ending.document
    assert (document["schema"], document["planned"]) == ("kopt.imported/1", 2)
    assert [row["task"] for row in document["tasks"]] == ["one", "two"]
    assert {row["reason"] for row in document["tasks"]} == {
        "no Workload says how large it is (rows)"
    }
    again = kopt("import", "trace", "set", "-o", "fi")
    assert "2 tasks, 2 of them done before: 0 imported" in again.stdout
