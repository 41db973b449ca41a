"""The integers of a Python file that may be its sizes, by the names that they are assigned to."""

import ast
from collections.abc import Collection, Iterator


def named_integers(
    tree: ast.Module, functions: Collection[str], above: int
) -> dict[str, list[ast.Constant]]:
    """Return the integers of top-level assignments and of some functions.

    Args:
        tree: The file.
        functions: Names of the functions whose integers count.
        above: Integers up to this one are left out.

    Returns:
        The places of each: by the name that it is assigned to, else by line and column.
    """
    found: dict[str, list[ast.Constant]] = {}
    for statement in tree.body:
        is_assigned = isinstance(statement, ast.Assign | ast.AnnAssign)
        counts = isinstance(statement, ast.FunctionDef) and statement.name in functions
        names = {id(value): name for name, value in _assigned(statement)}
        for node in _integers(statement, above) if is_assigned or counts else ():
            found.setdefault(names.get(id(node), _place(node)), []).append(node)
    return found


def inner_integers(
    tree: ast.Module, functions: Collection[str], above: int
) -> dict[str, list[ast.Constant]]:
    """Return the integers of the file's classes, and of its functions but `functions`."""
    found: dict[str, list[ast.Constant]] = {}
    for statement in tree.body:
        if (
            isinstance(statement, ast.ClassDef | ast.FunctionDef)
            and statement.name not in functions
        ):
            for node in _integers(statement, above):
                found.setdefault(_place(node), []).append(node)
    return found


def _integers(statement: ast.stmt, above: int) -> Iterator[ast.Constant]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > above:
            yield node


def _place(node: ast.Constant) -> str:
    return f"{node.lineno}:{node.col_offset}"


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a statement assigns to names: `a = 8`, `a: int = 8`, `a, b = 8, 16`."""
    pairs: list[tuple[ast.expr, ast.expr | None]] = []
    if isinstance(statement, ast.AnnAssign):
        pairs = [(statement.target, statement.value)]
    elif isinstance(statement, ast.Assign):
        pairs = [(target, statement.value) for target in statement.targets]
    for target, value in pairs:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            parts = list(zip(target.elts, value.elts, strict=False))
        else:
            parts = [] if value is None else [(target, value)]
        yield from ((one.id, given) for one, given in parts if isinstance(one, ast.Name))
