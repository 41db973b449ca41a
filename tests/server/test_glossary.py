"""docs/glossary.md has an entry for each head of a column that a command prints."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.command_line import Kopt

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text("utf-8")
PLACES = (
    *sorted((ROOT / "server").rglob("*.py")),
    *sorted((ROOT / "search" / "reports").glob("*.py")),
)
MAKERS = {"grid", "markdown_table", "Table", "add_column"}
NAMED = re.compile(r"COLUMNS|HEADS?|HEADER|_SPEED|_LIMITS|_TIMES|_FACTS|_\w*HEADS")
NOT_HEADS = {"heads", "rows", "bold", "dim", "left", "right", "fold", "ellipsis"}


def _words() -> set[str]:
    """Return the words that have an entry, in lower case."""
    first = [line.split(" | ")[0] for line in GLOSSARY.splitlines() if line.startswith("| ")]
    return {word.lower() for cell in first for word in re.findall(r"`([^`]+)`", cell)}


def _strings(node: ast.AST) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value


@cache
def _heads(path: Path) -> set[str]:
    """Return the texts of tuples and arguments that become heads of columns in one module."""
    tree = ast.parse(path.read_text("utf-8"))
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", None) or getattr(node.func, "attr", "")) in MAKERS
    ]
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    if not calls and not any(NAMED.fullmatch(name) for name in assigned):
        return set()
    ahead = [name for name in assigned if NAMED.fullmatch(name) or name == "heads"]
    ahead += [name for call in calls for argument in call.args for name in _names(argument)]
    found = [text for loop in _column_loops(tree) for text in _strings(loop.iter)]
    seen: set[str] = set()
    while ahead:
        name = ahead.pop()
        value = assigned.get(name)
        if name in seen or value is None:
            continue
        seen.add(name)
        if isinstance(value, ast.Tuple):
            found += _strings(value)
            ahead += _names(value)
        elif isinstance(value, ast.Dict):
            found += [text for key in value.keys if key is not None for text in _strings(key)]
    for call in (call for call in calls if getattr(call.func, "id", "") != "Table"):
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                found.append(argument.value)
            elif isinstance(argument, ast.Starred | ast.Tuple):
                found += _strings(argument)
    return {text.rstrip("#") for text in found} - NOT_HEADS - {""}


def _column_loops(tree: ast.AST) -> Iterator[ast.For]:
    """Yield `for column in (...)`, by which tables that rich makes get their columns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and getattr(node.target, "id", "") == "column":
            yield node


def _names(node: ast.AST) -> list[str]:
    return [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]


def test_every_head_of_a_column_has_an_entry() -> None:
    known = _words()
    heads = {head: path.name for path in PLACES for head in _heads(path)}
    missing = {f"{head} ({place})" for head, place in heads.items() if head.lower() not in known}
    assert missing == set()


def test_the_heads_are_found() -> None:
    """Heads are found in tables made of parts or by rich itself, Markdown pages and reports."""
    heads = {head for path in PLACES for head in _heads(path)}
    assert {"fill patterns", "spill B", "baseline us", "evaluated", "Family", "waves"} <= heads


@pytest.mark.parametrize("question", ["what is a regime", "glossary fill pattern", "what is slack"])
def test_a_word_is_found_by_the_search_of_documents(kopt: Kopt, question: str) -> None:
    assert "glossary" in kopt("docs", "search", question, "--source", "manual").stdout
