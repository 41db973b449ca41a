"""`kopt docs search --batch FILE`: many queries in one call, each answered in its place."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import click
from rich.text import Text

from kopt.config.errors import ToolError
from kopt.server.exits import ExitCode, failure_of
from kopt.server.session import Session, print_view
from kopt.server.views.docs_view import search_view
from kopt.tools.docs.records import SearchResult
from kopt.tools.docs.visible_text import shown

MAX_BYTES = 16 << 20
"""Largest file of queries: a thousand of the longest that are answered."""
MAX_QUERIES = 10_000
"""Most queries in one call, which keeps every answer until the last."""

Answer = SearchResult | ToolError


def search_batch(session: Session, file: str, ask: Callable[[str], SearchResult]) -> int:
    """Answer each query of `file`, print the answers in order, and return the exit code.

    Raises:
        ToolError: `file` cannot be read or holds no query, or every query is refused for one and
            the same reason, which then lies in the call.
    """
    queries = read_queries(file)
    answers = [_answered(query, ask) for query in queries]
    refused = [answer for answer in answers if isinstance(answer, ToolError)]
    if len(refused) == len(answers) and len({str(error) for error in refused}) == 1:
        raise refused[0]
    if session.as_json:
        pairs = zip(queries, answers, strict=True)
        click.echo(json.dumps([_document(query, answer) for query, answer in pairs]))
    else:
        for query, answer in zip(queries, answers, strict=True):
            _show(query, answer)
    return ExitCode.FELL_SHORT if refused else ExitCode.PASSED


def read_queries(file: str) -> list[str]:
    """Return the lines of `file` that are not blank; `-` is stdin.

    Raises:
        ToolError: It cannot be read, is no regular file, is too large, is no text in UTF-8, or has
            no query or too many.
    """
    name = "stdin" if file == "-" else shown(file)
    try:
        data = sys.stdin.buffer.read(MAX_BYTES + 1) if file == "-" else _content(Path(file))
    except OSError as error:
        raise ToolError(f"cannot read {name}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ToolError(f"{name} has more than {MAX_BYTES:,} bytes: split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"{name} is no text in UTF-8: byte {error.start} is none") from error
    if "\0" in text:
        raise ToolError(f"{name} is a binary file; one query a line is expected")
    queries = [query for line in text.split("\n") if (query := line.strip())]
    if not queries:
        raise ToolError(f"{name} has no query: write one a line")
    if len(queries) > MAX_QUERIES:
        raise ToolError(f"{name} has {len(queries):,} queries, {MAX_QUERIES:,} at most: split it")
    return queries


def _content(path: Path) -> bytes:
    """Return at most MAX_BYTES + 1 bytes of a regular file; a pipe could be silent for ever."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ToolError(f"{shown(str(path))} is no regular file: pipe it into --batch -")
    with path.open("rb") as opened:
        return opened.read(MAX_BYTES + 1)


def _answered(query: str, ask: Callable[[str], SearchResult]) -> Answer:
    try:
        return ask(query)
    except ToolError as error:
        return error


def _document(query: str, answer: Answer) -> dict[str, object]:
    """Return an answer; for a refused query the error with the keys that readers of hits expect."""
    if isinstance(answer, ToolError):
        return {**failure_of(answer).document(), "query": query, "hits": []}
    return answer.model_dump(mode="json", by_alias=True)


def _show(query: str, answer: Answer) -> None:
    heading = Text(f"=== {shown(query)[:200]}", style="bold")
    if isinstance(answer, ToolError):
        print_view((heading, Text(str(answer), style="yellow"), ""))
    else:
        print_view((heading, *search_view(answer), ""))
