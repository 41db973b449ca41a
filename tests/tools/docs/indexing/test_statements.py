"""SQL statements in kopt's own modules, read as text."""

import ast
import re
from pathlib import Path

import kopt

NUMBERED = re.compile(r"\?\d")
SQL = re.compile(r"\b(select|insert|update|delete|where|match)\b")
PACKAGE = Path(next(iter(kopt.__path__)))
LAYERS = ("config", "kernels", "tools", "search", "server")


def numbered_in(text: str) -> list[str]:
    strings = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [value for value in strings if NUMBERED.search(value) and SQL.search(value)]


def test_no_statement_numbers_its_placeholders() -> None:
    """From 3.14 on Python refuses a sequence of values for `?1`: `?` and `:name` work everywhere."""
    assert numbered_in('"select id from chunk where id = ?1"')
    found = {
        str(path): numbered
        for layer in LAYERS
        for path in sorted((PACKAGE / layer).rglob("*.py"))
        if (numbered := numbered_in(path.read_text("utf-8")))
    }
    assert found == {}
