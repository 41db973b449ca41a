"""Change one operator, constant, condition or statement at a time: which tests notice?

    .venv/bin/python benchmarks/mutants.py tools/bench/verdict.py -- tests/tools/bench
    .venv/bin/python benchmarks/mutants.py tools/check/*_gate.py --sample 60 -- tests/tools/check
    .venv/bin/python benchmarks/mutants.py tools/sim/runtime/*.cpp --sample 50 -- tests/tools/sim

The sources are Python modules or C++; statements are left out of Python only.
Prints the mutants that survive: a line that no test of those looks at, or a change without effect.
With --json every test that failed for each mutant is written down.
The modules are changed in place, in this checkout, and put back, also after Ctrl-C.
"""

import argparse
import ast
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
}
_NO_CPP = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|^ *(?:#|static_assert)(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
"""Comments, strings and preprocessor lines."""
_CPP_TOKENS = {
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    " == ": " != ",
    " != ": " == ",
    " && ": " || ",
    " || ": " && ",
    " + ": " - ",
    " - ": " + ",
    "true": "false",
    "false": "true",
    "!": "",
}
_CPP_TOKEN = re.compile(
    r" (?:[<>]=?|[=!]=|&&|\|\||[+-]) |\b(?:true|false)\b|!(?!=)|(?<![\w.])\d\w*(?![.\w'])"
)
_CPP_CONDITION = re.compile(r"\bif (\()")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_LIMIT_S = 300.0
"""Seconds after which a run of the tests counts as a mutant noticed: it hangs."""


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    path: Path
    line: int
    begin: int
    """Offset in the text where `old` begins."""
    old: str
    new: str

    def __str__(self) -> str:
        """`verdict.py:41: < becomes <=`."""
        return f"{self.path}:{self.line}: {self.old.strip()} becomes {self.new.strip()}"


def mutants_of(path: Path) -> list[Mutant]:
    """Return every mutant of a Python module or a C++ source, in the order of its text."""
    text = path.read_text("utf-8")
    changes = _python_changes(text) if path.suffix == ".py" else _cpp_changes(text)
    found = [
        Mutant(path, text.count("\n", 0, begin) + 1, begin, text[begin:end], new)
        for begin, end, new in changes
    ]
    return sorted(set(found), key=lambda one: (one.begin, one.new))


def _cpp_changes(text: str) -> Iterator[tuple[int, int, str]]:
    # Blanks stand for what is no code, so that every offset stays.
    code = _NO_CPP.sub(lambda found: " " * len(found[0]), text)
    for found in _CPP_TOKEN.finditer(code):
        begin, end, token = *found.span(), found[0]
        if token[0].isdigit():
            number = re.match(r"0x[0-9a-fA-F]+|\d+", token)
            if number is not None:
                yield begin, begin + number.end(), str(int(number[0], 0) + 1)
        else:
            yield begin, end, _CPP_TOKENS[token]
    for found in _CPP_CONDITION.finditer(code):
        yield found.start(1), found.start(1), "!"


def _python_changes(text: str) -> Iterator[tuple[int, int, str]]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in _code(ast.parse(text)):
        yield from _value_changes(node, text, starts)
        yield from _flow_changes(node, text, starts)


def _code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that run: no annotations, docstrings or arguments of decorators."""
    decorators: list[ast.expr] = getattr(tree, "decorator_list", [])
    for child in ast.iter_child_nodes(tree):
        is_text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
        is_annotation = isinstance(tree, ast.AnnAssign) and child is tree.annotation
        if is_text or is_annotation or isinstance(child, ast.arguments) or child in decorators:
            continue
        yield child
        yield from _code(child)


def _flow_changes(
    node: ast.AST, text: str, starts: Sequence[int]
) -> Iterator[tuple[int, int, str]]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            begin, end = _begin(test, starts), _end(test, starts)
            yield begin, end, f"not ({text[begin:end]})"
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
            yield _begin(node, starts), _end(node, starts), "pass"
        case _:
            return


def _value_changes(
    node: ast.AST, text: str, starts: Sequence[int]
) -> Iterator[tuple[int, int, str]]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield _end(left, starts), _begin(right, starts), f" {_COMPARISONS[type(operator)]} "
        case ast.BoolOp(op=operator, values=[first, second, *_]):
            word = " or " if isinstance(operator, ast.And) else " and "
            begin, end = _end(first, starts), _begin(second, starts)
            if text[begin:end].strip() in ("and", "or"):
                yield begin, end, word
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _begin(node, starts), _begin(operand, starts), ""
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            begin, end = _end(left, starts), _begin(right, starts)
            if not text[begin:end].strip(" +-*/"):
                yield begin, end, f" {_OPERATORS[type(operator)]} "
        case ast.Constant(value=bool(value)):
            yield _begin(node, starts), _end(node, starts), str(not value)
        case ast.Constant(value=int(value)):
            yield _begin(node, starts), _end(node, starts), str(value + 1)
        case ast.Constant(value=float(value)):
            yield _begin(node, starts), _end(node, starts), repr(value * 1.5 or 0.5)
        case _:
            return


def _begin(node: ast.AST, starts: Sequence[int]) -> int:
    return starts[getattr(node, "lineno", 1) - 1] + getattr(node, "col_offset", 0)


def _end(node: ast.AST, starts: Sequence[int]) -> int:
    return starts[getattr(node, "end_lineno", 1) - 1] + getattr(node, "end_col_offset", 0)


@contextmanager
def planted(mutant: Mutant) -> Generator[None]:
    """Change the module for the duration of the block."""
    text = mutant.path.read_text("utf-8")
    after = mutant.begin + len(mutant.old)
    mutant.path.write_text(text[: mutant.begin] + mutant.new + text[after:], "utf-8")
    try:
        yield
    finally:
        mutant.path.write_text(text, "utf-8")


def failing(tests: Sequence[str], stop_at_first: bool) -> list[str]:
    """Return the ids of the tests that fail now; `hangs` where they do not end in time."""
    words = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
    words += ["-p", "no:xdist", *(["-x"] if stop_at_first else []), *tests]
    # Bytecode of a mutant of the same size and second would pass for that of the module.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return ["hangs"]
    failed = _FAILED.findall(done.stdout)
    if done.returncode not in (0, 1) and not failed:
        return ["does not start"]
    return failed


def main() -> None:
    """Plant the mutants one after another and print those that no test noticed."""
    parser = argparse.ArgumentParser(description="Which changes of a module do tests notice?")
    parser.add_argument("modules", type=Path, nargs="+")
    parser.add_argument("--sample", type=int, help="so many mutants, drawn with a fixed seed")
    parser.add_argument("--json", type=Path, help="write each mutant with the tests that failed")
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    tests = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else ["tests"]
    options = parser.parse_args(own)
    if failing(tests, stop_at_first=True):
        raise SystemExit("the tests fail as it is: mend them first")
    mutants = [one for path in options.modules for one in mutants_of(path)]
    if options.sample is not None and options.sample < len(mutants):
        mutants = random.Random(1).sample(mutants, options.sample)
    noticed: list[tuple[str, list[str]]] = []
    start = time.monotonic()
    for number, mutant in enumerate(mutants, 1):
        with planted(mutant):
            noticed.append((str(mutant), failing(tests, stop_at_first=options.json is None)))
        if not noticed[-1][1]:
            print(f"survives: {mutant}", flush=True)
        spent = time.monotonic() - start
        if sys.stderr.isatty():
            print(f"\r{number}/{len(mutants)}, {spent:.0f} s", end="", file=sys.stderr)
    killed = sum(1 for _, tests_failed in noticed if tests_failed)
    print(f"{killed} of {len(mutants)} mutants noticed", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(noticed, indent=1), "utf-8")


if __name__ == "__main__":
    main()
