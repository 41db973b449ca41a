"""List the operators of an installed FlashInfer beside those that packaged problems time.

    .venv/bin/python benchmarks/library_paths.py [--source FOLDER] [--kernel PART ...] [--all]

FlashInfer's sources are read and not imported, so that no GPU is needed; FOLDER is its package,
that which is installed if it is not given. For each problem with library baselines: the public
functions (decorated with `flashinfer_api`) whose names are near those that its baseline.py calls,
their backends, and which of both occur there. A row that says `no` is a path that kopt does not
time, or a function that does something else: the reader decides. Without --all only those rows.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from markdown_tables import grid

from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems

COLUMNS = ("problem", "FlashInfer", "backend", "timed")
_NEAR = 0.5
"""The share of words that two names must have in common."""


@dataclass(frozen=True)
class Operator:
    """A public function of FlashInfer."""

    module: str
    name: str
    backends: tuple[str, ...]
    """What its parameter `backend` may be; empty where it has none, or any text."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Library paths that are timed, and those not.")
    parser.add_argument("--source", type=Path, help="the folder of the package flashinfer")
    parser.add_argument("--kernel", nargs="*", default=[""], help="parts of problem names")
    parser.add_argument("--all", action="store_true", help="show what is timed, too")
    options = parser.parse_args()
    source = options.source or installed()
    if source is None or not (source / "__init__.py").is_file():
        parser.error("no FlashInfer here: pip install flashinfer-python, or --source FOLDER")
    known = sorted(operators(source), key=lambda one: (one.module, one.name))
    rows = [
        row
        for name, problem in sorted(load_problems().items())
        if problem.baselines and any(part in name for part in options.kernel)
        for row in rows_of(problem, known)
        if options.all or row[-1] == "no"
    ]
    print(f"{len(known)} public functions in {source}\n")
    print(grid(COLUMNS, rows, COLUMNS))


def installed() -> Path | None:
    """Return the folder of the installed package; None where there is none."""
    found = find_spec("flashinfer")
    return None if found is None or found.origin is None else Path(found.origin).parent


def operators(source: Path) -> Iterator[Operator]:
    """Yield the public functions below the folder of FlashInfer's package."""
    for path in source.rglob("*.py"):
        module = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(map(_is_public, node.decorator_list)):
                yield Operator(module, node.name, tuple(_backends(node)))


def rows_of(problem: Problem, known: list[Operator]) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row for each backend of the operators near a problem."""
    text = (problem.folder / "baseline.py").read_text("utf-8")
    tree = ast.parse(text)
    called = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    literals = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = {one.name for one in known} & called | {problem.name}
    for one in known:
        if not any(_nearness(one.name, name) >= _NEAR for name in names):
            continue
        for backend in one.backends or ("",):
            is_timed = one.name in called and (not backend or backend in literals)
            where = f"{one.module}.{one.name}"
            yield problem.name, where, backend, "yes" if is_timed else "no"


def _nearness(one: str, other: str) -> float:
    ours, theirs = set(re.split("_", one)), set(re.split("_", other))
    return len(ours & theirs) / len(ours | theirs)


def _is_public(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "flashinfer_api"


def _backends(function: ast.FunctionDef) -> Iterator[str]:
    arguments = (*function.args.args, *function.args.kwonlyargs)
    for argument in arguments:
        if argument.arg == "backend" and argument.annotation is not None:
            for node in ast.walk(argument.annotation):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value


if __name__ == "__main__":
    main()
