"""`kopt docs search --batch`: one answer a query, in the order of the file, whatever is in it."""

import io
import os
import threading
from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from kopt.tools.docs.records import SearchResult
from support.command_line import Kopt


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """Return the path of a file that a test fills."""
    return tmp_path / "queries.txt"


def test_each_query_is_answered_in_its_place(kopt: Kopt, queries: Path) -> None:
    queries.write_bytes("\ufeffwarp shuffle\r\n\r\n  cp.async\t\nNaïve ∑ reduction".encode())
    ending = kopt("docs", "search", "--batch", queries, "--json", "--k", "3")
    assert ending.code == ExitCode.PASSED
    results = [SearchResult.model_validate(one) for one in ending.documents]
    assert [one.query for one in results] == ["warp shuffle", "cp.async", "Naïve ∑ reduction"]
    assert results[1].hits == SearchResult.model_validate(_alone(kopt, "cp.async")).hits


def _alone(kopt: Kopt, query: str) -> object:
    return kopt("docs", "search", query, "--json", "--k", "3").document


def test_hits_of_json_are_as_many_as_asked_for_and_whole(kopt: Kopt, queries: Path) -> None:
    queries.write_text("rmsnorm reduction\n")
    (result,) = kopt("docs", "search", "--batch", queries, "--json", "--k", "30").documents
    assert len(result["hits"]) == 30
    assert {hit["left_out_lines"] for hit in result["hits"]} == {0}


def test_budget_that_is_asked_for_is_kept(kopt: Kopt, queries: Path) -> None:
    queries.write_text("rmsnorm reduction\n")
    words = ("--batch", queries, "--json", "--k", "30", "--max-tokens", "500")
    (result,) = kopt("docs", "search", *words).documents
    assert result["tokens"] <= 500
    assert len(result["hits"]) < 30


def test_refused_query_keeps_its_place_and_the_others(kopt: Kopt, queries: Path) -> None:
    queries.write_text(f"warp\n...\n{'x' * 20_000}\ngrid\n")
    ending = kopt("docs", "search", "--batch", queries, "--json")
    assert ending.code == ExitCode.FELL_SHORT
    assert [one["status"] for one in ending.documents] == ["passed", "error", "error", "passed"]
    refused = ending.documents[1]
    assert (refused["query"], refused["hits"]) == ("...", [])
    assert "no word to search for" in refused["message"]


def test_filter_that_no_query_can_do_with_is_a_mistake_of_the_call(
    kopt: Kopt, queries: Path
) -> None:
    queries.write_text("warp\n...\ngrid\n")
    ending = kopt("docs", "search", "--batch", queries, "--source", "nowhere")
    assert (ending.code, ending.stdout) == (ExitCode.USAGE, "")
    assert ending.stderr.startswith("kopt: source 'nowhere' is unknown")


def test_queries_can_come_from_stdin(kopt: Kopt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"warp\ngrid\n")))
    ending = kopt("docs", "search", "--batch", "-", "--json")
    assert [one["query"] for one in ending.documents] == ["warp", "grid"]


def test_people_read_one_answer_below_the_other(kopt: Kopt, queries: Path) -> None:
    queries.write_text("warp\n...\ngrid\n")
    ending = kopt("docs", "search", "--batch", queries)
    assert [line for line in ending.stdout.splitlines() if line.startswith("=== ")] == [
        "=== warp",
        "=== ...",
        "=== grid",
    ]
    assert "no word to search for" in ending.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x89PNG\r\n\x1a\n\xff\xd8", "no text in UTF-8"),
        (b"warp\0shuffle", "binary file"),
        (b" \n\n", "no query"),
        (b"", "no query"),
        (b"warp\n" * 10_001, "has 10,001 queries, 10,000 at most"),
        (b"a" * ((16 << 20) + 1), "more than 16,777,216 bytes"),
    ],
)
def test_file_that_holds_no_queries_is_refused_in_one_line(
    kopt: Kopt, queries: Path, content: bytes, said: str
) -> None:
    queries.write_bytes(content)
    ending = kopt("docs", "search", "--batch", queries)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
    assert ending.stderr.count("\n") == 1


def test_missing_file_and_folder_are_named(kopt: Kopt, tmp_path: Path) -> None:
    missing = kopt("docs", "search", "--batch", tmp_path / "none")
    assert missing.code == ExitCode.USAGE
    assert f"cannot read {tmp_path / 'none'}: No such file" in missing.stderr
    assert "Is a directory" in kopt("docs", "search", "--batch", tmp_path).stderr


def test_pipe_that_nobody_writes_to_is_refused_at_once(kopt: Kopt, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Else a kopt that waits for a writer would wait for ever.
    release = threading.Timer(5.0, lambda: os.close(os.open(pipe, os.O_RDWR)))
    release.start()
    ending = kopt("docs", "search", "--batch", pipe)
    release.cancel()
    assert ending.code == ExitCode.USAGE
    assert f"{pipe} is no regular file: pipe it into --batch -" in ending.stderr


def test_controls_in_the_name_of_a_file_are_not_written(kopt: Kopt, tmp_path: Path) -> None:
    named = tmp_path / "a\x9b31m\u202e"
    named.write_bytes(b"")
    for path in (named, tmp_path / "b\x9b31m\u202e"):
        said = kopt("docs", "search", "--batch", path).stderr
        assert path.name[0] + "\ufffd31m\ufffd" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [((), "say what to look for"), (("warp", "--batch", "-"), "leave out TEXT")],
)
def test_text_or_a_file_is_expected(kopt: Kopt, words: tuple[str, ...], said: str) -> None:
    ending = kopt("docs", "search", *words)
    assert ending.code == ExitCode.USAGE
    assert said in ending.stderr
